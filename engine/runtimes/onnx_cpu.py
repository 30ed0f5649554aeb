"""ONNX Runtime on the processor, set for low latency beside a player that must not starve."""

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
from numpy.typing import NDArray

from utterd.engine.runtimes.contract import Abandon, AbandonedError, Arrays, RuntimeFailedError

_POLL_SECONDS = 0.002
_ERRORS_ONLY = 3


class OnnxCpu:
    """ONNX Runtime's CPU provider."""

    name = "onnxruntime-cpu"

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
        try:
            session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001 - its errors share no base but Exception
            raise RuntimeFailedError(f"{path} can't be loaded: {_line(error)}") from None
        return OnnxCpuGraph(path.name, session)


class OnnxCpuGraph:
    """One session and the thread that can leave its runs; see `Graph`."""

    def __init__(self, name: str, session: onnxruntime.InferenceSession) -> None:
        optional = session.get_overridable_initializers()
        self.inputs = tuple(value.name for value in (*session.get_inputs(), *optional))
        self.outputs = tuple(value.name for value in session.get_outputs())
        self.busy_ns = 0
        self._name = name
        self._session = session
        self._watched: queue.SimpleQueue[_Run | None] = queue.SimpleQueue()
        self._watcher = threading.Thread(target=self._watch, name="abandon", daemon=True)
        self._watcher.start()

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
            arrays: Arrays = self._session.run(outputs, feeds, run.options)
        except Exception as error:  # noqa: BLE001 - its errors share no base but Exception
            if run.options.terminate:
                raise AbandonedError from None
            raise RuntimeFailedError(f"{self._name} failed: {_line(error)}") from None
        finally:
            run.done = True
            self.busy_ns += time.monotonic_ns() - began
        return arrays

    def close(self) -> None:
        """Free the session and end its thread."""
        self._watched.put(None)
        self._watcher.join()
        del self._session

    def _watch(self) -> None:
        while (run := self._watched.get()) is not None:
            # It sleeps instead of waiting to be woken: waking it would cost the speaking thread the
            # interpreter just when its samples are there.
            while run.abandon is not None and not run.done:
                if run.abandon():
                    run.options.terminate = True
                    break
                time.sleep(_POLL_SECONDS)


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
