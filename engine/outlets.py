"""Where the samples of a generation go: the ring of the player, or messages to the daemon."""

import time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from utterd.audio.ring import Ring, Writer
from utterd.engine.channel import Channel
from utterd.engine.messages import Pcm

_PCM_SAMPLES = 19_200
_REMEMBERED = 256


class Outlet(Protocol):
    """One way out."""

    waited_ns: int
    """Time spent waiting for room, since it was made."""

    def is_dropped(self, generation: int) -> bool:
        """Whether nothing more of a generation is wanted; cheap, asked by any thread."""
        ...

    def write(
        self, generation: int, position: int, samples: NDArray[np.float32], *, last: bool
    ) -> bool:
        """Pass samples on, waiting for room; False as soon as the generation is dropped."""
        ...


class RingOutlet:
    """Into the shared ring; the fence and the table of revoked generations speak for it."""

    def __init__(self, ring: Ring, wake_fd: int, sample_rate: int) -> None:
        self.waited_ns = 0
        self.waiting = False
        """The ring is nearly full: how fast it goes on is the speaker's affair."""
        self._ring = ring
        self._writer = Writer(ring, wake_fd)
        self._sample_rate = sample_rate

    def has_room(self, *, shared: bool) -> bool:
        """Whether more should be written now.

        Args:
            shared: others want the thread that writes: not before half of the ring is free, and ten
                seconds of speech in the other.
        """
        return (2 if shared else 8) * self._ring.free >= self._ring.capacity

    def has_begun(self, generation: int) -> bool:
        """Whether a generation was the last that something was written of."""
        return self._ring.written[0] == generation

    def is_dropped(self, generation: int) -> bool:
        """See `Outlet.is_dropped`."""
        return self._ring.is_dropped(generation)

    def write(
        self, generation: int, position: int, samples: NDArray[np.float32], *, last: bool
    ) -> bool:
        """See `Outlet.write`."""
        if self._ring.free > 2 * samples.nbytes + 65_536:
            return self._writer.write(generation, position, samples, self._sample_rate, last=last)
        began, worked = time.monotonic_ns(), time.thread_time_ns()
        self.waiting = True
        try:
            kept = self._writer.write(generation, position, samples, self._sample_rate, last=last)
        finally:
            self.waiting = False
        self.waited_ns += time.monotonic_ns() - began - (time.thread_time_ns() - worked)
        return kept


class DaemonOutlet:
    """As `Pcm` messages; `Abandon` messages speak for it."""

    def __init__(self, channel: Channel) -> None:
        self.waited_ns = 0
        self._channel = channel
        self._abandoned = [0] * _REMEMBERED

    def abandon(self, generation: int) -> None:
        """Drop a generation."""
        self._abandoned[generation % _REMEMBERED] = generation

    def is_dropped(self, generation: int) -> bool:
        """See `Outlet.is_dropped`."""
        return self._abandoned[generation % _REMEMBERED] == generation

    def write(
        self, generation: int, position: int, samples: NDArray[np.float32], *, last: bool
    ) -> bool:
        """See `Outlet.write`."""
        del last  # `Finished` says so.
        for begin in range(0, len(samples), _PCM_SAMPLES):
            if self.is_dropped(generation):
                return False
            data = samples[begin : begin + _PCM_SAMPLES].astype("<f4", copy=False).tobytes()
            began, worked = time.monotonic_ns(), time.thread_time_ns()
            self._channel.send(Pcm(generation, position + begin, data))
            self.waited_ns += time.monotonic_ns() - began - (time.thread_time_ns() - worked)
        return not self.is_dropped(generation)
