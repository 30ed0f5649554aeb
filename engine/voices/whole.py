"""The speech of voices whose network makes a segment in one run."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.contract import Skipped
from utterd.engine.voices import shape
from utterd.engine.voices.contract import Timing


@dataclass(frozen=True, slots=True)
class WholeSpeech:
    """A segment whose samples are all there; see `Speech`."""

    timing: Timing
    encoded_ns: int
    skipped: tuple[Skipped, ...]
    samples: NDArray[np.float32]
    sample_rate: int
    settled: bool = True

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """See `Speech.chunks`."""
        return shape.chunks(self.samples, self.sample_rate)
