"""What the worker asks of a voice."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.contract import Segment


@dataclass(frozen=True, slots=True)
class Controls:
    """How to say it: factors on speed (0.5 to 3) and F0 (0.5 to 2)."""

    rate: float = 1.0
    pitch: float = 1.0


@dataclass(frozen=True, slots=True)
class Timing:
    """What a voice knows of a segment before its samples: lengths and word starts, in samples."""

    words: tuple[int, ...]
    """First sample of each `Segment.words` entry, from the first sample of the segment."""
    marks: tuple[int, ...]
    samples: int
    """Length of the segment without its pause."""


class Speech(Protocol):
    """A segment being synthesised: first its timing, then its samples chunk by chunk."""

    timing: Timing
    encoded_ns: int
    """When the timing was known (CLOCK_MONOTONIC)."""

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """Yield mono samples in [-1, 1] at the voice's rate, `timing.samples` in all."""
        ...


class AbandonedError(Exception):
    """Raised by a voice that saw `abandon()` turn true in the middle of its work."""


class Voice(Protocol):
    """A loaded voice. One thread calls it."""

    name: str
    sample_rate: int
    languages: tuple[str, ...]
    speakers: tuple[str, ...]
    controls: tuple[str, ...]
    runtime: str

    def speak(self, segment: Segment, controls: Controls, abandon: Callable[[], bool]) -> Speech:
        """Begin a segment.

        Heads and tails are trimmed to 10 ms of silence; pauses between segments are the worker's.

        Raises:
            AbandonedError: `abandon()` turned true; asked at least once a chunk.
        """
        ...

    def close(self) -> None:
        """Free the runtime."""
        ...
