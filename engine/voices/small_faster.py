"""Faster than the small voice's decoder speaks well: windows of its sound, closer to each other.

Asked for very short phonemes the decoder mumbles. Therefore it is asked for longer ones, and
windows of what it says are laid down closer to each other than they were taken. Each is taken up to
half a period earlier or later, so that its pulses fall on those that lie there already (overlap
and add in step with the pitch: Moulines and Charpentier 1990). Where pulses are is known from the
source that drives the decoder: nothing is searched for, and where windows are taken does not hang
on how the sound is cut into chunks.
"""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from utterd.engine.voices.small_frames import HOP, Array, Frames
from utterd.engine.voices.small_stream import Stream

_WINDOW = 2 * HOP
"""25 ms: two periods of a low voice, and the shortest sounds of speech whole."""
_SHAPE = np.asarray(
    0.5 - 0.5 * np.cos((np.arange(_WINDOW) + 0.5) * (2 * np.pi / _WINDOW)), np.float32
)
_FURTHER = 3
"""Blocks behind a window's middle that it hangs on: its half, and half a period of 40 Hz."""


def needed(blocks: int, factor: float) -> int:
    """Return how many of the decoder's blocks the first `blocks` of a `Faster` hang on."""
    return math.ceil(blocks * factor) + _FURTHER


class Faster:
    """The sound of a stream, shorter by a factor; used as a `Stream` is.

    Args:
        stream: of the decoder, at its beginning.
        frames: what it is fed with.
        factor: more than 1.
    """

    def __init__(self, stream: Stream, frames: Frames, factor: float) -> None:
        self.done = 0
        self._stream = stream
        self._factor = factor
        self._middle = 0.0
        """Where the last window that was laid down should have its middle, in the decoder's
        samples; it has it at the nearest one. Roundings must not add up: they would be a pitch."""
        self._sound = np.zeros(_WINDOW, np.float32)
        self._sound_from = -_WINDOW
        self._listen(frames)

    def extend(self, hidden: Array, frames: Frames) -> None:
        """See `Stream.extend`."""
        self._stream.extend(hidden, frames)
        self._listen(frames)

    def places(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `Stream.places`."""
        places: NDArray[np.int64] = np.rint(ends * (HOP / self._factor)).astype(np.int64)
        return places

    def take(self, blocks: int) -> Array:
        """See `Stream.take`."""
        first, last = self.done, min(self.done + blocks, self.total)
        if first == last:
            return np.zeros(0, np.float32)
        # A block is the second half of one window and the first of the next, which the block
        # behind it begins with again.
        middles = [self._middle]
        for window in range(first + 1, last + 1):
            middles.append(self._next(window, middles[-1]))
        self._middle = middles[-1]
        whole = [round(middle) for middle in middles]
        self._hear(max(whole) + HOP)
        out = np.zeros((last - first, HOP), np.float32)
        for block, (one, other) in enumerate(itertools.pairwise(whole)):
            out[block] = self._part(one, one + HOP) * _SHAPE[HOP:]
            out[block] += self._part(other - HOP, other) * _SHAPE[:HOP]
        self._forget(whole[-1] - _WINDOW)
        self.done = last
        return out.reshape(-1)

    def _listen(self, frames: Frames) -> None:
        self.total = math.ceil(len(frames.phoneme) / self._factor)
        self._source = frames.source
        self._cycles = np.cumsum(frames.source[:, 1], dtype=np.float64)

    def _next(self, window: int, before: float) -> float:
        """Where a window is taken, by its middle, if the one before it was taken at `before`."""
        middle = window * HOP * self._factor
        frame = min(int(middle) // HOP, len(self._source) - 1)
        _, cycles, _, voiced = self._source[frame]
        if not voiced:
            return middle
        wanted, there = np.interp(
            [before + HOP, middle], (np.arange(len(self._cycles)) + 0.5) * HOP, self._cycles
        )
        late = wanted - there
        return middle + (late - round(late)) * HOP / float(cycles)

    def _hear(self, end: int) -> None:
        """Let the decoder speak up to sample `end`, or its end and silence behind it."""
        blocks = min(-(-end // HOP), self._stream.total) - self._stream.done
        new = [self._sound]
        if blocks > 0:
            new.append(self._stream.take(blocks))
        known = self._sound_from + sum(map(len, new))
        new.append(np.zeros(max(0, end - known), np.float32))
        self._sound = np.concatenate(new)

    def _part(self, begin: int, end: int) -> Array:
        return self._sound[begin - self._sound_from : end - self._sound_from]

    def _forget(self, before: int) -> None:
        gone = max(0, before - self._sound_from)
        self._sound, self._sound_from = self._sound[gone:], self._sound_from + gone
