"""From the rate of a voice to the rate of the device, in a stream, without losing time.

soxr works in blocks of some 35 ms and answers nothing until one is full, which would delay every
first sound. So what has arrived can also be had at once: a second, short-lived stream runs over
the latest input as if it ended there, and all of its output is used but the last few samples,
which would still change with what follows. The main stream then leaves out what is already out.
The two agree to 1e-6 of full scale (tests/audio/test_resample.py).
"""

from math import gcd

import numpy as np
import soxr
from numpy.typing import NDArray

Samples = NDArray[np.float32]

_QUALITY = "HQ"
_UNSETTLED = 110
"""Samples at the lower rate before the end of the input that depend on what follows."""
_NOTHING = np.zeros(0, np.float32)


class Resampler:
    """One run of samples without a break, from `source_rate` to `device_rate` (both in Hz).

    Sample `i` that comes out stands at source position `i * source_rate / device_rate` of the run.
    """

    def __init__(self, source_rate: int, device_rate: int) -> None:
        self.source_rate = source_rate
        self.device_rate = device_rate
        self._stream = soxr.ResampleStream(
            source_rate, device_rate, 1, dtype="float32", quality=_QUALITY
        )
        self._out = 0  # samples handed out
        self._made = 0  # samples the main stream has made
        self._history = _NOTHING
        self._taken = 0  # source samples that have come in

    def push(self, samples: Samples, *, last: bool) -> Samples:
        """Put source samples in and take what is new of the output.

        Args:
            samples: Shape (frames,).
            last: The run ends with them.
        """
        self._taken += len(samples)
        self._history = np.concatenate((self._history, samples))
        made = self._stream.resample_chunk(samples, last=last)
        self._made += len(made)
        new = self._hand_out(made, self._made)
        self._forget()
        return new

    def hurry(self) -> Samples:
        """Take what the input so far determines, although the main stream still keeps it."""
        begin = self._taken - len(self._history)
        early = soxr.resample(self._history, self.source_rate, self.device_rate, quality=_QUALITY)
        unsettled = -(-_UNSETTLED * self.device_rate // min(self.source_rate, self.device_rate))
        begin_out = begin * self.device_rate // self.source_rate
        settled = early[: max(0, len(early) - unsettled)]
        return self._hand_out(settled, begin_out + len(settled))

    def _forget(self) -> None:
        """Drop the history that no early stream needs: all before the filter of what is next."""
        lower = min(self.source_rate, self.device_rate)
        reach = -(-2 * _UNSETTLED * self.source_rate // lower)
        needed = max(0, self._out * self.source_rate // self.device_rate - reach)
        # An early stream has to begin where both rates have a sample.
        needed -= needed % (self.source_rate // gcd(self.source_rate, self.device_rate))
        begin = self._taken - len(self._history)
        self._history = self._history[needed - begin :]

    def _hand_out(self, samples: Samples, end: int) -> Samples:
        """The part of `samples`, which end at output index `end`, that is not out yet."""
        new = min(max(0, end - self._out), len(samples))
        self._out += new
        return samples[len(samples) - new :]
