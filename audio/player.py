"""The player: opens a sink, keeps it fed, tells what sounds, and gets over its loss.

        OPENING --opened--> RUNNING --trouble--> LOST --retry--> OPENING
           |                                      ^
           +--------------failed------------------+          any --stop--> CLOSING

        RUNNING --idle--> RELEASED --wanted--> OPENING

Within RUNNING the audio thread has its own states (idle, playing, starved, pausing, paused,
dropping: `audio/native/core.h`).
"""

import contextlib
import gc
import os
import select
import time
from enum import Enum, auto

from utterd.audio._callback import Core, lock_memory
from utterd.audio.channel import Channel
from utterd.audio.deadline import Deadline
from utterd.audio.events import to_message
from utterd.audio.feed import Feed
from utterd.audio.idleness import Idleness
from utterd.audio.messages import (
    Alive,
    Configure,
    DeviceLost,
    Expect,
    Opened,
    Released,
    Shutdown,
    ToPlayer,
)
from utterd.audio.noise import StderrLimiter
from utterd.audio.paced import PacedSink, WavSink
from utterd.audio.portaudio import DeviceSink
from utterd.audio.reference import Reference
from utterd.audio.ring import Ring, RingError
from utterd.audio.sink import Format, Reason, Sink, SinkError

STALL_SECONDS = 0.25
_OPEN_SECONDS = 7.0
_CLOSE_SECONDS = 0.3
_RELEASE_SECONDS = 2.0
"""A sound server that answers may be slow about it, and nothing waits."""
_FADE_SECONDS = 0.25
_RETRY_SECONDS = (0.2, 5.0)
_STEADY_SECONDS = 5.0
"""A sink that ran this long was not opened in vain: the next retry comes soon again."""
_ALIVE_SECONDS = 1.0
_CHECK_SECONDS = 0.1
_IDLE_CHECK_SECONDS = 0.25
_PRIORITY = 10
"""Below the audio thread's (20), above everything that is not real-time."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class State(Enum):
    """Where the player stands with its sink."""

    OPENING = auto()
    RUNNING = auto()
    RELEASED = auto()
    """Nothing is wrong with the sink; there was nothing to play for long."""
    LOST = auto()
    CLOSING = auto()


class Happening(Enum):
    """What moves the player from one state to another."""

    OPENED = auto()
    FAILED = auto()
    TROUBLE = auto()
    IDLE = auto()
    WANTED = auto()
    RETRY = auto()
    STOP = auto()


TRANSITIONS: dict[tuple[State, Happening], State] = {
    (State.OPENING, Happening.OPENED): State.RUNNING,
    (State.OPENING, Happening.FAILED): State.LOST,
    (State.OPENING, Happening.STOP): State.CLOSING,
    (State.RUNNING, Happening.TROUBLE): State.LOST,
    (State.RUNNING, Happening.IDLE): State.RELEASED,
    (State.RUNNING, Happening.STOP): State.CLOSING,
    (State.RELEASED, Happening.WANTED): State.OPENING,
    (State.RELEASED, Happening.STOP): State.CLOSING,
    (State.LOST, Happening.RETRY): State.OPENING,
    (State.LOST, Happening.STOP): State.CLOSING,
}


class Player:
    """One player process: everything but the start and the end of it.

    Args:
        channel: To the daemon.
        ring: Where samples come from.
        wake_fd: Eventfd written by whoever changed the ring.
        configure: Where to play and how.
        stderr: What the sound library writes.
    """

    def __init__(
        self,
        channel: Channel[ToPlayer],
        ring: Ring,
        wake_fd: int,
        configure: Configure,
        stderr: StderrLimiter,
    ) -> None:
        self.state = State.OPENING
        self._channel = channel
        self._ring = ring
        self._wake_fd = wake_fd
        self._stderr = stderr
        self._core_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._core = Core(ring.memory, self._core_fd)
        self._feed = Feed(ring, self._core)
        self._reference = Reference(
            self._core, configure.reference, configure.reference_gid, self._core_fd
        )
        self._idleness = Idleness(self._core, self._feed, configure.release_after_s)
        self._sink = _make_sink(self._core, configure)
        self._format: Format | None = None
        self._opened_ns = 0
        self._retry_seconds = _RETRY_SECONDS[0]
        self._retry_at = 0.0
        self._alive_at = 0.0
        self._stale_since = 0.0
        self._stopping = False
        self._poll = select.poll()
        for fd in (channel.fileno(), wake_fd, self._core_fd, stderr.fd):
            self._poll.register(fd, select.POLLIN)

    def stop(self) -> None:
        """Ask for the end, from a signal handler."""
        self._stopping = True
        os.eventfd_write(self._core_fd, 1)

    def run(self) -> None:
        """Play until the daemon or a signal ends it."""
        while self.state is not State.CLOSING:
            if self._stopping:
                self._enter(Happening.STOP)
            elif self.state is State.OPENING:
                self._open()
            else:
                self._wait()
        self._fade_and_close()

    def _enter(self, happening: Happening) -> None:
        self.state = TRANSITIONS[self.state, happening]

    def _open(self) -> None:
        self._tell_alive()  # it may take a few seconds
        last_words = self._lost_message(
            "failed", f"opening {self._sink.name} hangs; the player starts again"
        )
        try:
            with Deadline(_OPEN_SECONDS, lambda: self._channel.send(last_words)):
                opened = self._sink.open()
        except SinkError as error:
            self._lose(Happening.FAILED, error)
            return
        finally:
            self._reference.load()
        self._format = opened
        self._opened_ns = time.monotonic_ns()
        self._stale_since = 0.0
        self._idleness.begin(time.monotonic())
        _hurry_process()
        self._enter(Happening.OPENED)
        self._feed.attach(opened.rate, opened.speed)
        self._reference.opened(opened.device, opened.rate, self._opened_ns)
        self._channel.send(
            Opened(
                device=opened.device,
                rate=opened.rate,
                channels=opened.channels,
                period_frames=opened.period_frames,
                latency_ms=opened.latency_ms,
                realtime=self._core.realtime,
                memory_locked=lock_memory(),
                ns=time.monotonic_ns(),
            )
        )
        self._work()

    def _wait(self) -> None:
        """Sleep until something happened or is due, and do it."""
        now = time.monotonic()
        sounds = self._core.place()[0] != 0
        check = _CHECK_SECONDS if sounds else _IDLE_CHECK_SECONDS
        due = self._alive_at
        if self.state is State.RUNNING:
            due = min(due, now + check)
        elif self.state is State.LOST:
            due = min(due, self._retry_at)
        flags = select.POLLIN | (select.POLLOUT if self._channel.blocked else 0)
        self._poll.modify(self._channel.fileno(), flags)
        if self._poll.poll(max(0.0, due - now) * 1000):
            self._work()
        self._check(time.monotonic())

    def _work(self) -> None:
        """Move messages, samples and events."""
        for fd in (self._wake_fd, self._core_fd):
            _drain(fd)
        for message in self._read_channel():
            if isinstance(message, Shutdown):
                self._stopping = True
            elif isinstance(message, Expect):
                self._idleness.expected = message.sound
        try:
            if self.state is State.RUNNING:
                self._feed.fill()
            else:
                self._feed.reap(time.monotonic_ns())
        except RingError as error:
            os.write(2, f"utterd player: {error}; what was in it is left out\n".encode())
        self._tell_events()
        self._publish()
        self._stderr.pass_on()
        self._channel.flush()
        if self.state is State.RELEASED and self._idleness.wanted:
            self._enter(Happening.WANTED)

    def _check(self, now: float) -> None:
        if now >= self._alive_at:
            self._alive_at = now + _ALIVE_SECONDS
            self._tell_alive()
        if self.state is State.RUNNING:
            self._check_sink(now)
        if self.state is State.RUNNING and self._idleness.over(now):
            self._release()
        elif self.state is State.LOST and now >= self._retry_at:
            self._enter(Happening.RETRY)

    def _read_channel(self) -> list[ToPlayer]:
        messages = self._channel.receive()
        if self._channel.closed:
            self._stopping = True  # the daemon is gone; nobody else would end this process
        return messages

    def _tell_events(self) -> None:
        events = self._core.events()
        for event in events:
            self._channel.send(to_message(event))
        if events and self._format is not None:
            self._idleness.begin(time.monotonic() + self._format.latency_ms / 1000)

    def _publish(self) -> None:
        if (fd := self._reference.bind()) >= 0:
            self._poll.register(fd, select.POLLIN)
        self._reference.publish()

    def _tell_alive(self) -> None:
        underruns = self._core.underruns
        self._tell_events()  # each underrun before the count that has it
        self._channel.send(
            Alive(
                rss_bytes=_rss_bytes(),
                underruns=underruns,
                ns=time.monotonic_ns(),
                subscribed=self._reference.subscribed,
                reference_frames=self._core.frames_copied,
                reference_dropped=self._core.frames_dropped,
                reference_problem=self._reference.problem,
            )
        )

    def _callback_age(self) -> float:
        """Seconds since the last callback, or since the sink was opened; 0 without one."""
        if self._format is None:
            return 0.0
        last = max(self._ring.heartbeat_ns, self._opened_ns)
        return (time.monotonic_ns() - last) / 1e9

    def _check_sink(self, now: float) -> None:
        error = self._sink.trouble()
        if self._core.runaway:
            error = SinkError(
                "stalled", f"{self._sink.name} ran wild and lost its real-time priority; reopening"
            )
        if self._callback_age() <= STALL_SECONDS:
            self._stale_since = 0.0
        elif not self._stale_since:
            # Perhaps the whole process stood still: give the callback time to come again.
            self._stale_since = now
        elif now - self._stale_since >= _CHECK_SECONDS / 2 and error is None:
            error = SinkError(
                "stalled", f"{self._sink.name} takes no sound any more: unplugged, or stuck?"
            )
        if error is not None:
            self._lose(Happening.TROUBLE, error)

    def _lose(self, happening: Happening, error: SinkError) -> None:
        if (time.monotonic_ns() - self._opened_ns) / 1e9 >= _STEADY_SECONDS and self._format:
            self._retry_seconds = _RETRY_SECONDS[0]
        self._format = None
        self._enter(happening)
        self._channel.send(self._lost_message(error.reason, error.message))
        self._reference.closed(error.message)  # now: closing may hang
        with Deadline(_CLOSE_SECONDS, self._stderr.finish):
            self._sink.close()
        self._feed.detach()
        self._retry_at = time.monotonic() + self._retry_seconds
        self._retry_seconds = min(2 * self._retry_seconds, _RETRY_SECONDS[1])

    def _release(self) -> None:
        """Let go of a sink that has nothing to play; whatever is wanted opens it again."""
        last_words = self._lost_message(
            "stalled", f"closing {self._sink.name} hangs; the player starts again"
        )
        with Deadline(_RELEASE_SECONDS, lambda: self._channel.send(last_words)):
            self._sink.release()
        self._reference.closed("nothing has sounded for a while, so it was let go")
        self._channel.send(Released(time.monotonic_ns()))
        self._format = None
        self._feed.detach()
        self._retry_seconds = _RETRY_SECONDS[0]
        self._enter(Happening.IDLE)
        gc.collect()  # off while anything sounds

    def _lost_message(self, reason: Reason, message: str) -> DeviceLost:
        return DeviceLost(
            device=self._sink.name,
            reason=reason,
            message=message,
            retry_ms=round(1000 * self._retry_seconds),
            ns=time.monotonic_ns(),
        )

    def _fade_and_close(self) -> None:
        """Ramp down, tell the last events, let go. Nothing that could hang holds the exit up."""
        if self._format is not None:
            self._core.hold()
            until = time.monotonic() + _FADE_SECONDS
            while not self._core.silent and time.monotonic() < until:
                time.sleep(0.001)
            self._reference.publish()
            time.sleep(self._format.latency_ms / 1000)
        self._tell_events()
        with Deadline(_CLOSE_SECONDS, self._stderr.finish):
            self._sink.close()
        self._reference.closed("the player ends")
        self._reference.close()
        self._stderr.finish()


def _make_sink(core: Core, configure: Configure) -> Sink:
    if configure.sink == "wav":
        return WavSink(core, configure)
    if configure.sink == "null":
        return PacedSink(core, configure)
    return DeviceSink(core, configure)


def _hurry_process() -> None:
    """Let this thread run before others too, where that is granted.

    Without it a busy machine delays the first sound by its time slices. `Opened.realtime` tells
    whether the audio thread has the same right; one is never granted without the other.
    """
    with contextlib.suppress(PermissionError):
        wanted = os.sched_param(_PRIORITY)
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, wanted)


def _drain(fd: int) -> None:
    try:
        os.eventfd_read(fd)
    except BlockingIOError:
        return


def _rss_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - once a second, for long
        return int(file.read().split()[1]) * _PAGE_BYTES
