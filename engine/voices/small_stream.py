"""The small voice's decoder, fed with the frames of one segment a few at a time.

Output block j (300 samples) needs the decoder's frames j - 19 to j + 20, the source of blocks j - 3
to j + 3 and the noise of spectra j - 1 to j + 2; what was already seen stays in the graph's states.
The first call therefore takes a halo with it, and every later one only what is new: chunks are
computed from the same numbers as the whole, in the same order.
"""

import numpy as np
from numpy.typing import NDArray

from utterd.engine.runtimes.contract import Abandon, AbandonedError, Graph
from utterd.engine.voices.small_frames import BINS, FEATURES, HOP, SOURCE, Array, Frames

_KEPT = 6
"""Frames each convolution keeps: its width less one."""
_SPAN = 4
"""Blocks a spectrum lies in."""
_NOISE_FRAMES = 509
"""Noise repeats after 6.4 s; a prime, so that it meets no rhythm."""


def noise_table() -> Array:
    """Return Gaussian noise for spectra, (509, 2, BINS), variance 1/2; always the same."""
    rng = np.random.Generator(np.random.Philox(0))
    return rng.standard_normal((_NOISE_FRAMES, 2, BINS), np.float32) * np.float32(0.5**0.5)


class Decoder:
    """The loaded graph and its sizes, as its states' number tells them."""

    def __init__(self, graph: Graph, hidden: int, state: int) -> None:
        self.graph = graph
        self.states = [name for name in graph.inputs if name.startswith("state_")]
        self.outputs = ["samples", "overlap_next", *(f"{name}_next" for name in self.states)]
        self.hidden = hidden
        self.state = state
        self.halo = len(self.states) * _KEPT // 2
        self.ahead = self.halo + _SPAN - 2
        """Frames behind a block that it hangs on."""
        self.noise = noise_table()


class Stream:
    """One segment on its way through the decoder.

    Args:
        decoder: what runs it.
        hidden: (P, C) phoneme vectors.
        frames: T frames.
        abandon: see `Voice.speak`.
    """

    def __init__(self, decoder: Decoder, hidden: Array, frames: Frames, abandon: Abandon) -> None:
        self.done = 0
        self._decoder = decoder
        self._abandon = abandon
        self._before, self._after = decoder.halo + 1, decoder.ahead
        self.extend(hidden, frames)
        empty = np.zeros((1, 0, decoder.state), np.float32)
        self._states: list[Array] = [
            np.zeros((1, 0, _SPAN * 300), np.float32),
            *(empty for _ in decoder.states),
        ]

    def extend(self, hidden: Array, frames: Frames) -> None:
        """Go on with more frames; what the blocks that were taken hang on must be as it was."""
        self.total = len(frames.phoneme)
        self._hidden = hidden
        self._phoneme = frames.phoneme
        self._features = frames.features
        self._source = _padded(frames.source, _SPAN - 1, _SPAN - 1)

    def places(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the samples at which frames that end at `ends` have sounded."""
        return ends * HOP

    def take(self, blocks: int) -> Array:
        """Return the next `blocks` x 300 samples, fewer at the end.

        Raises:
            AbandonedError: `abandon()` turned true.
            RuntimeFailedError: the graph failed.
        """
        first, last = self.done, min(self.done + blocks, self.total)
        if first == last:
            return np.zeros(0, np.float32)
        fresh = first == 0
        hidden, features = self._window(
            first - self._before if fresh else first + self._after, last + self._after
        )
        spectra = np.arange(first if fresh else first + _SPAN - 1, last + _SPAN - 1)
        feeds: dict[str, Array] = {
            "hidden": hidden,
            "features": features,
            "source": self._source[None, spectra[0] : last + 2 * _SPAN - 2],
            "noise": self._decoder.noise[spectra % _NOISE_FRAMES][None],
            "overlap": self._states[0],
            **dict(zip(self._decoder.states, self._states[1:], strict=True)),
        }
        if self._abandon():
            raise AbandonedError
        # A chunk takes a few milliseconds: nothing to be left in the middle.
        samples, *self._states = self._decoder.graph.run(self._decoder.outputs, feeds)
        self.done = last
        return np.asarray(samples[0], np.float32)

    def _window(self, start: int, stop: int) -> tuple[Array, Array]:
        """Hidden states and features of frames `start` to `stop`; zeros outside the segment."""
        hidden = np.zeros((1, stop - start, self._decoder.hidden), np.float32)
        features = np.zeros((1, stop - start, FEATURES), np.float32)
        first, last = max(start, 0), min(stop, self.total)
        if first < last:
            inside = slice(first - start, last - start)
            hidden[0, inside] = self._hidden[self._phoneme[first:last]]
            features[0, inside] = self._features[first:last]
        return hidden, features


def _padded(source: Array, before: int, after: int) -> Array:
    padded = np.zeros((len(source) + before + after, SOURCE), np.float32)
    padded[before : before + len(source)] = source
    return padded
