"""A real daemon in a folder of its own, for the tests of the paths between rooms."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config, Paths

TERMINAL = frozenset({"ended", "cancelled", "failed", "dropped"})


class DaemonProcess:
    """A running `utterd serve`.

    Args:
        run_dir: its sockets; the log goes to `daemon.log` in it.
        data_dir: its voices.
        options: of `utterd serve`.
        environment: variables to add.
        wait: return only when the default voice is warm and the player has tried its device.
    """

    def __init__(
        self,
        run_dir: Path,
        data_dir: Path,
        *options: str,
        environment: dict[str, str] | None = None,
        wait: bool = True,
    ) -> None:
        self.run_dir = run_dir
        self.config = Config(paths=Paths(run=str(run_dir), data=str(data_dir)))
        self.log = run_dir.parent / f"{run_dir.name}.log"
        self._environment = {**os.environ, **(environment or {})}
        # Ends with the tests, even where those are killed.
        self._command = ["setpriv", "--pdeathsig", "TERM"]
        self._command += [sys.executable, "-P", "-m", "utterd.daemon.cli", "serve"]
        self._command += ["--run-dir", str(run_dir), "--data-dir", str(data_dir), *options]
        self.start(wait=wait)

    def start(self, *, wait: bool = True) -> None:
        """Start it (again)."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.run_dir.parent,
            )
        if wait:
            self.wait_until(self._ready, 120.0, "the daemon to be ready")

    def _ready(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended: {self.log.read_text()}")
        with self.client() as client:
            try:
                client.call("warmup", timeout_s=0.3)
                health = client.call("health")
            except DaemonError:
                return False
        return bool(health["player"]["state"] == "ready")

    def client(self, name: str = "") -> Client:
        """A new connection."""
        return Client(self.config, name)

    def children(self) -> list[psutil.Process]:
        """The player and the workers."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, module: str) -> psutil.Process:
        """The one child that runs a module, such as `utterd.engine.worker`."""
        (found,) = [child for child in self.children() if runs(child, module)]
        return found

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Signal it and wait.

        Returns:
            Seconds until it had ended with all its children.
        """
        children = self.children() if self.process.poll() is None else []
        begin = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(10.0)
        _, alive = psutil.wait_procs(children, timeout=5.0)
        assert not alive, f"children outlived the daemon: {alive}"
        return time.monotonic() - begin

    def wait_until(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Poll a condition."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, (
                f"waited {timeout_s} s for {what}; log: {self.log.read_text()}"
            )
            time.sleep(0.01)


def runs(process: psutil.Process, module: str) -> bool:
    """Whether a process runs a module: started with it, or forked and called after it."""
    try:
        return module in " ".join(process.cmdline()).split()
    except psutil.NoSuchProcess:  # it has just ended, or nobody has asked for its exit code yet
        return False


class Listener:
    """Collects all events of a daemon from now on, on a thread of its own."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self._client = daemon.client()
        try:
            self._client.subscribe()
        except DaemonError:
            self._client.close()
            raise
        self.events: list[dict[str, Any]] = []
        self._arrived = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while not self._stopped:
            for event in self._client.events(timeout_s=0.05):
                with self._arrived:
                    self.events.append(event)
                    self._arrived.notify_all()
                if self._stopped:
                    return

    def of(self, id_: str) -> list[dict[str, Any]]:
        """Events of an utterance so far."""
        return [event for event in list(self.events) if event["id"] == id_]

    def wait_for(
        self, id_: str, names: str | frozenset[str] = TERMINAL, timeout_s: float = 60.0
    ) -> dict[str, Any]:
        """Wait for an event of an utterance; terminal where none is named."""
        wanted = frozenset({names}) if isinstance(names, str) else names

        def found() -> dict[str, Any] | None:
            return next((e for e in self.events if e["id"] == id_ and e["event"] in wanted), None)

        with self._arrived:
            assert self._arrived.wait_for(lambda: found() is not None, timeout_s), (
                f"no {sorted(wanted)} of {id_!r}; had {[e['event'] for e in self.of(id_)]}"
            )
            event = found()
        assert event is not None
        return event

    def close(self) -> None:
        """Stop listening."""
        self._stopped = True
        self._thread.join()
        self._client.close()


@contextmanager
def listening(daemon: DaemonProcess) -> Iterator[Listener]:
    """A listener for the length of a block."""
    listener = Listener(daemon)
    try:
        yield listener
    finally:
        listener.close()


def leftovers(run_dir: Path) -> list[str]:
    """Files that a daemon left in its run folder."""
    return sorted(path.name for path in run_dir.iterdir()) if run_dir.exists() else []
