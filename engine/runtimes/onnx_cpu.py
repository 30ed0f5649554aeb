"""ONNX Runtime on the processor, set for low latency beside a player that must not starve."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import onnxruntime
from numpy.typing import NDArray

from utterd.engine.runtimes.contract import Abandon, AbandonedError, Arrays, RuntimeFailedError

_POLL_SECONDS = 0.002
_ERRORS_ONLY = 3

Beside = Callable[[], AbstractContextManager[None]]


class OnnxCpu:
    """ONNX Runtime's CPU provider.

    Args:
        beside: entered where a graph runs, or is loaded again, and nothing else is done.
    """

    name = "onnxruntime-cpu"

    def __init__(self, beside: Beside = nullcontext) -> None:
        self._beside = beside

    def load(self, path: Path, threads: int, *, optimise: bool = True) -> "OnnxCpuGraph":
        """Load a graph; see `Runtime.load`."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = _ERRORS_ONLY
        if not optimise:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        # A spinning pool would hold every core between two operators and after the last one.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        # Sentences differ in length, and a plan of the memory kept for each length only grows.
        # The arena stays: without it Kokoro takes 2.4 GB for a long sentence instead of 0.65.
        options.enable_mem_pattern = False
        return OnnxCpuGraph(path, options, self._beside)


class OnnxCpuGraph:
    """A session for each thread that runs it, and the thread that can leave runs; see `Graph`.

    In a session that two threads share, each gets the memory that the other has just let go, which
    lies in the wrong core's cache: that takes 1.4 times as long.
    """

    def __init__(self, path: Path, options: onnxruntime.SessionOptions, beside: Beside) -> None:
        self._name = path.name
        self._options = options
        self._beside = beside
        self._own = _Own()
        try:
            session = self._session(path)
            # Held open: later sessions must be of the same graph, though the voice was replaced.
            self._file = path.open("rb")
        except Exception as error:  # noqa: BLE001 - its errors share no base but Exception
            raise RuntimeFailedError(f"{path} can't be loaded: {_line(error)}") from None
        self._unused = [session]
        optional = session.get_overridable_initializers()
        self.inputs = tuple(value.name for value in (*session.get_inputs(), *optional))
        self.outputs = tuple(value.name for value in session.get_outputs())
        self._watched: queue.SimpleQueue[_Run | None] = queue.SimpleQueue()
        self._watcher = threading.Thread(target=self._watch, name="abandon", daemon=True)
        self._watcher.start()

    @property
    def busy_ns(self) -> int:
        """See `Graph.busy_ns`."""
        return self._own.busy_ns

    def run(
        self,
        outputs: Sequence[str],
        feeds: Mapping[str, NDArray[Any]],
        abandon: Abandon | None = None,
    ) -> Arrays:
        """Compute `outputs`; see `Graph.run`."""
        if abandon is not None and abandon():
            raise AbandonedError
        run = _Run(abandon)
        if abandon is not None:
            self._watched.put(run)
        began = time.monotonic_ns()
        try:
            session = self._own.session or self._take()
            with self._beside():
                arrays: Arrays = session.run(outputs, feeds, run.options)
        except Exception as error:  # noqa: BLE001 - its errors share no base but Exception
            if run.options.terminate:
                raise AbandonedError from None
            raise RuntimeFailedError(f"{self._name} failed: {_line(error)}") from None
        finally:
            run.done = True
            self._own.busy_ns += time.monotonic_ns() - began
        return arrays

    def close(self) -> None:
        """Free the sessions and end its thread."""
        self._watched.put(None)
        self._watcher.join()
        self._file.close()
        del self._own, self._unused

    def _take(self) -> onnxruntime.InferenceSession:
        """A session for this thread alone: the first one, or another."""
        if self._unused:
            self._own.session = self._unused.pop()
        else:
            with self._beside():
                self._own.session = self._session(Path(f"/proc/self/fd/{self._file.fileno()}"))
        return self._own.session

    def _session(self, path: Path) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(
            str(path), self._options, providers=["CPUExecutionProvider"]
        )

    def _watch(self) -> None:
        while (run := self._watched.get()) is not None:
            # It sleeps instead of waiting to be woken: waking it would cost the speaking thread the
            # interpreter just when its samples are there.
            while run.abandon is not None and not run.done:
                if run.abandon():
                    run.options.terminate = True
                    break
                time.sleep(_POLL_SECONDS)


class _Own(threading.local):
    """What a graph keeps for each thread that runs it."""

    session: onnxruntime.InferenceSession | None = None
    busy_ns = 0


class _Run:
    """One call, as the watching thread sees it."""

    def __init__(self, abandon: Abandon | None) -> None:
        self.abandon = abandon
        self.options = onnxruntime.RunOptions()
        if abandon is not None:
            # A long run gives back what it took, so that the longest sentence doesn't stay.
            self.options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self.done = False


def _line(error: Exception) -> str:
    """The first line of an error, short enough for a message."""
    return " ".join(str(error).split())[:300]
