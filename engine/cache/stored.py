"""What the cache keeps of a segment."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from utterd.engine.voices.contract import Timing


@dataclass(frozen=True, slots=True)
class Stored:
    """A segment without its places in the text."""

    timing: Timing
    samples: NDArray[np.float32]
    """Not to be written to."""
