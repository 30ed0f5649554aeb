"""The workers: one a loaded voice, loaded when first wanted."""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from utterd.audio.ring import Ring
from utterd.daemon.config import Config
from utterd.daemon.supervisor import Child, State
from utterd.daemon.voices import Voices
from utterd.engine import messages as engine
from utterd.engine.client import WorkerProcess

log = logging.getLogger("workers")


class Listener(Protocol):
    """Who wants to know what becomes of workers."""

    def worker_ready(self, voice: str, ready: engine.Ready) -> None:
        """A voice is warm."""
        ...

    def worker_lost(self, voice: str, reason: str) -> None:
        """A worker died."""
        ...

    def worker_broken(self, voice: str, message: str) -> None:
        """A voice can't be loaded."""
        ...

    def worker_said(self, voice: str, message: engine.FromWorker) -> None:
        """Any other message."""
        ...


class Worker:
    """The worker of one voice, over all its lives."""

    def __init__(
        self, voice: str, spawn: Callable[[], WorkerProcess], listener: Listener, config: Config
    ) -> None:
        self.voice = voice
        self.ready: engine.Ready | None = None
        self.broken = ""
        self.rss_bytes = 0
        self._listener = listener
        self._stall_ns = int(config.engine.stall_timeout_s * 1e9)
        self._progress = (-1, 0)
        self.child = Child(
            f"worker-{voice}", spawn, self._said, self._lost, config.engine.ready_timeout_s
        )

    def _said(self, message: engine.FromWorker) -> None:
        match message:
            case engine.Ready():
                self.ready = message
                self.child.ready()
                self._listener.worker_ready(self.voice, message)
            case engine.Broken():
                self.broken = message.message
                self.child.broken()
                self._listener.worker_broken(self.voice, message.message)
            case engine.Alive():
                self.rss_bytes = message.rss_bytes
                self._watch(message)
            case _:
                self._listener.worker_said(self.voice, message)

    def _watch(self, alive: engine.Alive) -> None:
        """Kill a worker that is busy and gets nowhere."""
        progress, since_ns = self._progress
        if not alive.busy or alive.progress != progress:
            self._progress = (alive.progress, alive.ns)
        elif alive.ns - since_ns > self._stall_ns:
            self.child.kill(f"no progress for {self._stall_ns / 1e9:.0f} s")

    def _lost(self, reason: str) -> None:
        self.ready = None
        self._progress = (-1, 0)
        if not self.broken:
            self._listener.worker_lost(self.voice, reason)


class Workers:
    """All workers."""

    def __init__(
        self, config: Config, voices: Voices, ring: Ring, wake_fd: int, listener: Listener
    ) -> None:
        self._config = config
        self._voices = voices
        self._ring = ring
        self._wake_fd = wake_fd
        self._listener = listener
        self.by_voice: dict[str, Worker] = {}

    def load(self, voice: str) -> Worker:
        """The worker of a voice, started if it has no life and is not waiting for its next."""
        worker = self.by_voice.get(voice)
        if worker is None:
            worker = Worker(voice, lambda: self._spawn(voice), self._listener, self._config)
            self.by_voice[voice] = worker
        if worker.child.state in (State.STOPPED, State.BROKEN):
            worker.broken = ""
            worker.child.start()
        return worker

    def send(self, voice: str, message: engine.ToWorker) -> None:
        """Send a message to a voice's worker."""
        if worker := self.by_voice.get(voice):
            worker.child.send(message)

    def check(self) -> None:
        """Kill workers that have not even said that they are alive."""
        for worker in self.by_voice.values():
            silent_ns = time.monotonic_ns() - worker.child.heard_ns
            if worker.child.state is State.READY and silent_ns > 10_000_000_000:
                worker.child.kill("no sign of life for 10 s")

    def stop(self, timeout_s: float) -> None:
        """End all."""
        for worker in self.by_voice.values():
            worker.child.stop(engine.Shutdown(), timeout_s)

    def _spawn(self, voice: str) -> WorkerProcess:
        process = WorkerProcess(self._ring.fd, self._wake_fd)
        process.send(
            engine.Configure(
                voice_dir=str(self._voices.folder / voice),
                threads=self._config.engine.threads,
                lexicon=self._config.paths.lexicon,
            )
        )
        return process
