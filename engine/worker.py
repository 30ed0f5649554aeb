"""The worker process: one loaded voice, started and watched by the daemon.

The main thread receives messages and says once a second that it is alive; a second thread loads
the voice and speaks, so that neither waits for the other. Where several clients want samples of a
voice that runs side by side, more threads make them, as many as there are cores. The worker ends
at once when the daemon is gone, whatever it is doing.
"""

import argparse
import contextlib
import ctypes
import gc
import logging
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal, NoReturn

import msgspec

from utterd.audio.ring import Ring, RingError
from utterd.engine import warm
from utterd.engine.cache.opened import open_cache
from utterd.engine.cache.readings import RememberingReader
from utterd.engine.cache.store import Cache
from utterd.engine.cache.voice import CachedVoice
from utterd.engine.channel import Channel
from utterd.engine.frontend.reader import Reader
from utterd.engine.lock import GlobalLock
from utterd.engine.messages import (
    Abandon,
    Alive,
    Broken,
    Configure,
    Forget,
    Ready,
    Say,
    Shutdown,
    ToWorker,
)
from utterd.engine.outlets import DaemonOutlet, Outlet, RingOutlet
from utterd.engine.runtimes.contract import RuntimeFailedError
from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.synthesize import Synthesizer
from utterd.engine.turns import Turns
from utterd.engine.voices import package
from utterd.engine.voices.contract import Voice
from utterd.engine.voices.load import load
from utterd.engine.voices.package import VoiceError

log = logging.getLogger("engine")

_ALIVE_SECONDS = 1.0
_SWEEP_SECONDS = 0.02
_ROOM_SECONDS = 0.005
"""Between two looks whether a full ring has room again."""
_MOST_THREADS = 4


class Worker:
    """The process's parts, and what they share.

    Args:
        channel: to the daemon.
        ring: to the player.
        wake_fd: wakes the player.
    """

    def __init__(self, channel: Channel, ring: Ring, wake_fd: int) -> None:
        self._channel = channel
        self._ring = ring
        self._voice_dir = ""
        self._wake_fd = wake_fd
        self._queue: queue.SimpleQueue[tuple[Say, int] | Forget] = queue.SimpleQueue()
        self._lock = GlobalLock()
        self._pieces: deque[tuple[int, Iterator[int]]] = deque()
        """For the player: the generation, and what does a chunk of it each time; in order."""
        self._turns = Turns()
        self._most_lanes = self._lanes = 1
        """Threads that step turns; the speaking thread is the first."""
        self._outlet = DaemonOutlet(channel)
        self._to_ring: RingOutlet | None = None
        self._progress = 0
        self._busy = False
        self._warm: Callable[[], float]
        self._reader: Reader | None = None
        self._cache: Cache | None = None

    def run(self) -> NoReturn:
        """Receive until the daemon says so or is gone."""
        waiting = select.poll()
        waiting.register(self._channel, select.POLLIN)
        due = time.monotonic() + _ALIVE_SECONDS
        try:
            while True:
                if waiting.poll(max(0.0, due - time.monotonic()) * 1000.0):
                    self._take(self._channel.receive(wait=True), time.monotonic_ns())
                if time.monotonic() >= due:
                    self._channel.send(self._alive(), wait=False)
                    due = time.monotonic() + _ALIVE_SECONDS
        except EOFError:
            _leave(0)
        except msgspec.DecodeError as error:
            log.critical("the daemon sent what this worker doesn't know: %s", error)
            _leave(2)

    def _take(self, message: ToWorker, received_ns: int) -> None:
        self._progress += 1
        match message:
            case Configure():
                self._voice_dir = message.voice_dir
                self._start("speak", partial(self._speak, message))
            case Say():
                self._queue.put((message, received_ns))
            case Forget():
                self._queue.put(message)
            case Abandon():
                self._outlet.abandon(message.generation)
            case Shutdown():
                # A record that is half copied into the ring was never there.
                _leave(0)

    def _start(self, name: str, work: Callable[[], None]) -> None:
        threading.Thread(target=self._guard, args=(work,), name=name, daemon=True).start()

    def _guard(self, work: Callable[[], None]) -> None:
        """Do the work of a thread; a fault in it ends the process."""
        try:
            with self._lock:
                work()
        except EOFError:
            _leave(0)
        except VoiceError as error:
            self._give_up(str(error))
        except Exception as error:
            log.exception("the worker can't go on")
            self._give_up(f"voice in {self._voice_dir}: {type(error).__name__}: {error}")

    def _speak(self, configure: Configure) -> NoReturn:
        """The speaking thread: load, warm, then speak what comes."""
        self._busy = True
        synthesizer = self._prepare(configure)
        while True:
            try:
                item = self._next(synthesizer)
            except queue.Empty:
                self._step(synthesizer)
            else:
                self._take_up(synthesizer, item)

    def _next(self, synthesizer: Synthesizer) -> tuple[Say, int] | Forget:
        """Wait for what comes next, while there is nothing to step.

        Raises:
            queue.Empty: nothing has come.
        """
        if self._sounds_on or self._turns.waiting:
            return self._queue.get_nowait()
        self._busy = bool(self._turns)
        patience = _SWEEP_SECONDS if self._turns or synthesizer.waits else None
        if self._pieces:
            patience = _ROOM_SECONDS
        with self._lock.released():
            return self._queue.get(timeout=patience)

    def _take_up(self, synthesizer: Synthesizer, item: tuple[Say, int] | Forget) -> None:
        if isinstance(item, Forget):
            # Behind what is spoken now, which is not to be kept. Nobody wants generation 0 heard.
            self._pieces.append((0, self._forgetting()))
            return
        piece, received_ns = item
        steps = synthesizer.steps(piece, received_ns)
        if piece.to == "ring":
            self._pieces.append((piece.generation, steps))
        else:
            self._turns.add(piece.generation, steps)
            self._share()

    def _step(self, synthesizer: Synthesizer) -> None:
        """Do one chunk of what is to be heard; if the ring is full, of what a client waits for."""
        if self._sounds_on:
            self._busy = True
            with self._lock.kept():  # what others make would only make it later
                if next(self._pieces[0][1], None) is None:
                    self._pieces.popleft()
            return
        synthesizer.sweep(self._is_under_way)
        if self._turns.waiting:
            self._busy = True
            self._turns.step()

    @property
    def _sounds_on(self) -> bool:
        """Whether a piece for the player is to go on now: there is room in the ring.

        One of which nothing is there yet doesn't wait for that, nor one that nobody wants any more.
        """
        outlet = self._to_ring
        if not self._pieces or outlet is None:
            return False
        generation = self._pieces[0][0]
        return (
            outlet.has_room(shared=bool(self._turns))
            or not outlet.has_begun(generation)
            or outlet.is_dropped(generation)
        )

    def _is_under_way(self, generation: int) -> bool:
        return generation in self._turns or any(generation == number for number, _ in self._pieces)

    def _share(self) -> None:
        """Let other threads step too, if there are that many generations."""
        if self._lanes < min(self._most_lanes, len(self._turns)):
            self._lanes += 1
            try:
                self._start(f"lane {self._lanes}", self._lane)
            except RuntimeError as error:  # the system gives no thread
                self._do_without(error)
        self._lock.wake()

    def _lane(self) -> None:
        """A thread that steps what the speaking thread doesn't."""
        try:
            self._warm()
        except RuntimeFailedError as error:
            self._do_without(error)
            return
        while True:
            if self._turns.waiting:
                self._turns.step()
            else:
                self._lock.wait()

    def _do_without(self, error: Exception) -> None:
        """Go on with the threads there are, one less than was thought."""
        self._lanes -= 1
        self._most_lanes = self._lanes
        log.warning("the voice in %s gets no further thread: %s", self._voice_dir, error)

    def _prepare(self, configure: Configure) -> Synthesizer:
        began = time.monotonic_ns()
        threads = configure.threads or min(_MOST_THREADS, len(os.sched_getaffinity(0)))
        found = package.read(Path(configure.voice_dir))
        voice = load(
            found.folder,
            "",
            OnnxCpu(self._lock.released),
            threads,
            verify=configure.verify,
        )
        lexicon = Path(configure.lexicon) if configure.lexicon else None
        remembers = configure.cache_memory_bytes > 0
        reader = (RememberingReader if remembers else Reader)(lexicon, emoji_policy=configure.emoji)
        loaded = time.monotonic_ns()
        self._warm = partial(warm.warm, voice, reader, self._tick)
        factor = self._warm() if configure.warm else 0.0
        # Nothing that was loaded will ever be garbage: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        _give_back()
        self._channel.send(_ready(voice, loaded - began, time.monotonic_ns() - loaded, factor))
        self._to_ring = RingOutlet(self._ring, self._wake_fd, voice.sample_rate)
        outlets: dict[Literal["ring", "daemon"], Outlet] = {
            "ring": self._to_ring,
            "daemon": self._outlet,
        }
        self._most_lanes = threads if voice.parallel else 1
        self._reader = reader
        self._cache = open_cache(configure, found, voice.runtime, threads)
        if self._cache is not None:
            voice = CachedVoice(voice, self._cache)
        return Synthesizer(voice, reader, outlets, self._channel.send, self._tick)

    def _forgetting(self) -> Iterator[int]:
        """Empty what is remembered, as a piece of no sound."""
        if self._cache is not None:
            self._cache.forget()
        if isinstance(self._reader, RememberingReader):
            self._reader.forget()
        yield from ()

    def _give_up(self, message: str) -> NoReturn:
        log.error("%s", message)
        try:
            self._channel.send(Broken(message))
        finally:
            _leave(1)

    def _tick(self) -> None:
        self._progress += 1

    def _alive(self) -> Alive:
        waits = self._to_ring is not None and self._to_ring.waiting
        busy = self._busy and not waits
        counts = self._cache.counts() if self._cache else None
        return Alive(rss_bytes(), self._progress, busy, time.monotonic_ns(), counts)


def _ready(voice: Voice, load_ns: int, warm_ns: int, factor: float) -> Ready:
    return Ready(
        voice=voice.name,
        sample_rate=voice.sample_rate,
        languages=list(voice.languages),
        speakers=list(voice.speakers),
        controls=list(voice.controls),
        runtime=voice.runtime,
        load_ms=load_ns / 1e6,
        warm_ms=warm_ns / 1e6,
        real_time_factor=factor,
        parallel=voice.parallel,
    )


def rss_bytes() -> int:
    """Resident memory of this process."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _give_back() -> None:
    """Return to the system what loading took and freed; only glibc keeps it, and can be asked."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _leave(code: int) -> NoReturn:
    """End now: a network that still runs must not keep the process."""
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a worker on descriptors that the daemon handed down."""
    parser = argparse.ArgumentParser(prog="utterd.engine.worker", description=__doc__)
    parser.add_argument("--control-fd", type=int, required=True, help="SOCK_SEQPACKET channel")
    parser.add_argument("--ring-fd", type=int, required=True, help="memfd of the sound ring")
    parser.add_argument("--wake-fd", type=int, required=True, help="eventfd that wakes the player")
    options = parser.parse_args(arguments)
    work(options.control_fd, options.ring_fd, options.wake_fd)


def work(control_fd: int, ring_fd: int, wake_fd: int) -> NoReturn:
    """Be a worker on these descriptors, in a process of its own, until the daemon ends it."""
    # Ctrl-C goes to the whole terminal; the daemon decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    try:
        channel = Channel(socket.socket(fileno=control_fd), ToWorker)
        ring = Ring.attach(ring_fd)
    except (OSError, RingError) as error:
        print(
            f"utterd.engine.worker: bad descriptor: {error}; the daemon starts it", file=sys.stderr
        )
        sys.exit(2)
    Worker(channel, ring, wake_fd).run()


if __name__ == "__main__":
    main()
