"""The workers: one a loaded voice, loaded when first wanted."""

import logging
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from utterd.audio.ring import Ring
from utterd.daemon.breaker import Breaker
from utterd.daemon.breaker import State as BreakerState
from utterd.daemon.config import Config
from utterd.daemon.memory import Ceiling
from utterd.daemon.overheard import Overheard
from utterd.daemon.protocol import ProtocolError
from utterd.daemon.supervisor import Child, State
from utterd.daemon.voices import Voices
from utterd.engine import messages as engine
from utterd.engine.client import Nursery, WorkerProcess
from utterd.sysconfig.client import Seats
from utterd.sysconfig.realtime import Grant

log = logging.getLogger("workers")

SILENT_NS = 10_000_000_000
"""A worker, and the nursery, say every second that they are alive."""
NURSERY_TIMEOUT_S = 120.0
"""From the nursery's start until it can fork; it computes for less than a second."""


class Listener(Protocol):
    """Who wants to know what becomes of workers."""

    def worker_ready(self, voice: str, ready: engine.Ready) -> None:
        """A voice is warm."""
        ...

    def worker_lost(self, voice: str, reason: str) -> None:
        """A worker died."""
        ...

    def worker_renewing(self, voice: str, reason: str) -> None:
        """A worker that has nothing to do is started anew."""
        ...

    def worker_broken(self, voice: str, message: str) -> None:
        """A voice can't be loaded."""
        ...

    def worker_said(self, voice: str, message: engine.FromWorker) -> None:
        """Any other message."""
        ...

    def needs(self, voice: str) -> bool:
        """Whether a voice has anything to say, or samples to make, now or next."""
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
        self.cache: engine.CacheCounts | None = None
        """Of its current life."""
        self.grants: list[Grant] = []
        """What it was given of the machine."""
        self.breaker = Breaker()
        self.ceiling = Ceiling("worker_rss_mb", config.limits.worker_rss_mb)
        self._listener = listener
        self._stall_ns = int(config.engine.stall_timeout_s * 1e9)
        self._progress = (-1, 0)
        self.verified = False
        """An earlier worker has found the package as it should be."""
        self._factor = 0.0
        """As last measured."""
        self.child = Child(
            f"worker-{voice}", spawn, self._said, self._lost, config.engine.ready_timeout_s
        )

    def _said(self, message: engine.FromWorker) -> None:
        match message:
            case engine.Ready():
                if message.real_time_factor:
                    self._factor = message.real_time_factor
                message = msgspec.structs.replace(message, real_time_factor=self._factor)
                self.ready = message
                self.verified = True
                self.child.ready()
                self._listener.worker_ready(self.voice, message)
            case engine.Broken():
                self.breaker.failed(time.monotonic_ns())
                self.broken = message.message
                self.child.broken()
                self._listener.worker_broken(self.voice, message.message)
            case engine.Alive():
                self.rss_bytes = message.rss_bytes
                self.cache = message.cache
                if self.ready is not None:  # how long it may take to load is another limit
                    self._watch(message)
            case _:
                if isinstance(message, engine.Finished):
                    self.breaker.succeeded()
                    self.child.worked()
                self._listener.worker_said(self.voice, message)

    def _watch(self, alive: engine.Alive) -> None:
        """Kill a worker that is busy and gets nowhere."""
        progress, since_ns = self._progress
        if not alive.busy or alive.progress != progress:
            self._progress = (alive.progress, alive.ns)
        elif alive.ns - since_ns > self._stall_ns:
            self.child.kill(f"no progress for {self._stall_ns / 1e9:.0f} s")

    def renew(self, reason: str) -> None:
        """End it, having nothing to do, and start it anew."""
        self.ready = None
        self.child.renew(engine.Shutdown(), reason)
        self._listener.worker_renewing(self.voice, reason)

    def _lost(self, reason: str) -> None:
        self.ready = None
        self._progress = (-1, 0)
        if self.broken or self.child.renewing:
            return
        self.breaker.failed(time.monotonic_ns())
        self._listener.worker_lost(self.voice, reason)
        if self.breaker.state is BreakerState.OPEN:
            message = f"the worker of the voice {self.voice} keeps dying ({reason})"
            self._listener.worker_broken(self.voice, message)


class Workers:
    """All workers."""

    def __init__(
        self,
        config: Config,
        voices: Voices,
        ring: Ring,
        wake_fd: int,
        *,
        seats: Seats,
        listener: Listener,
    ) -> None:
        self._config = config
        self._seats = seats
        self._voices = voices
        self._ring = ring
        self._wake_fd = wake_fd
        self._listener = listener
        self.by_voice: dict[str, Worker] = {}
        self._nursery: Nursery | None = None
        self._nursery_grants: list[Grant] = []
        self.nursery_rss_bytes = 0
        self._overheard = Overheard("workers")
        self.nursery = Child(
            "nursery",
            self._spawn_nursery,
            self._nursery_said,
            self._nursery_lost,
            NURSERY_TIMEOUT_S,
        )

    def start(self) -> None:
        """Start the nursery, so that it is there when the first voice is wanted."""
        self._overheard.listen()
        self.nursery.start()

    def admit(self, voice: str) -> None:
        """See whether a voice may be asked for something now.

        Raises:
            ProtocolError: `unavailable`, with `retry_after_ms`: its worker keeps failing.
        """
        worker = self.by_voice.get(voice)
        if worker is None:
            return
        blocked_ns = worker.breaker.blocked_ns(time.monotonic_ns())
        if blocked_ns:
            raise ProtocolError(
                "unavailable",
                worker.broken or f"the worker of the voice {voice} keeps dying",
                "voice",
                retry_after_ms=-(-blocked_ns // 1_000_000),
            )

    def load(self, voice: str) -> Worker:
        """The worker of a voice, started if it has no life and is not waiting for its next."""
        worker = self.by_voice.get(voice)
        if worker is None:
            worker = Worker(voice, lambda: self._spawn(voice), self._listener, self._config)
            self.by_voice[voice] = worker
        if worker.child.state in (State.STOPPED, State.BROKEN):
            worker.broken = ""
            worker.verified = False
            worker.child.start()
        return worker

    def unload(self, voice: str) -> None:
        """End the worker of a voice; it is loaded again when it is wanted."""
        if worker := self.by_voice.pop(voice, None):
            worker.child.stop(engine.Shutdown(), timeout_s=0.3)

    def send(self, voice: str, message: engine.ToWorker) -> None:
        """Send a message to a voice's worker."""
        if worker := self.by_voice.get(voice):
            worker.child.send(message)

    def forget(self) -> None:
        """Empty the caches of all voices that are loaded."""
        for worker in self.by_voice.values():
            worker.child.send(engine.Forget())

    def check(self, needed: Callable[[str], bool]) -> None:
        """Kill workers that say nothing any more, and start idle ones anew that have grown.

        Args:
            needed: whether a voice has anything to say now or next.
        """
        nursery_silent_ns = time.monotonic_ns() - self.nursery.heard_ns
        if self.nursery.state is State.READY and nursery_silent_ns > SILENT_NS:
            self.nursery.kill("no sign of life for 10 s")
        for worker in self.by_voice.values():
            if worker.child.state is not State.READY:
                continue
            if time.monotonic_ns() - worker.child.heard_ns > SILENT_NS:
                worker.child.kill("no sign of life for 10 s")
                continue
            reason = worker.ceiling.look(worker.child.name, worker.child.ready_ns, worker.rss_bytes)
            if reason and not needed(worker.voice):
                worker.renew(reason)

    def stop(self, timeout_s: float) -> None:
        """End all."""
        for worker in self.by_voice.values():
            worker.child.stop(engine.Shutdown(), timeout_s)
        self.nursery.stop(engine.Shutdown(), timeout_s)
        self._overheard.close()

    def _spawn_nursery(self) -> Nursery:
        with self._seats.spawning():
            self._nursery = Nursery(self._overheard.fd)
        # Cores and memory node are inherited by what it forks.
        self._nursery_grants = self._seats.seat("worker", self._nursery.pid)
        return self._nursery

    def _nursery_said(self, message: engine.FromNursery) -> None:
        self.nursery_rss_bytes = message.rss_bytes
        if self.nursery.state is State.STARTING:
            self.nursery.ready()

    def _nursery_lost(self, reason: str) -> None:
        del reason  # the supervisor has logged it
        self._nursery = None

    def _spawn(self, voice: str) -> WorkerProcess:
        if self._nursery is not None:
            process = WorkerProcess(self._ring.fd, self._wake_fd, self._nursery, voice)
            self.by_voice[voice].grants = self._nursery_grants
        else:  # it is being started again: this worker does without
            with self._seats.spawning():
                process = WorkerProcess(self._ring.fd, self._wake_fd, stderr=self._overheard.fd)
            self.by_voice[voice].grants = self._seats.seat("worker", process.pid)
        cache = self._config.cache
        process.send(
            engine.Configure(
                voice_dir=str(self._voices.folder(voice)),
                threads=self._config.engine.threads,
                lexicon=self._config.paths.lexicon,
                emoji=self._config.engine.emoji,
                verify=not self.by_voice[voice].verified,
                warm=not self._listener.needs(voice),
                cache_memory_bytes=cache.memory_mb * 1_000_000,
                cache_disk_bytes=cache.disk_mb * 1_000_000,
                cache_dir=str(self._config.cache_dir),
                cache_ttl_s=cache.ttl_hours * 3600,
            )
        )
        return process
