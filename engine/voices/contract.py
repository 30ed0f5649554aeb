"""What the worker asks of a voice."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.contract import Segment, Skipped
from utterd.engine.runtimes.contract import AbandonedError

__all__ = ["AbandonedError", "Control", "Controls", "Speech", "Timing", "Voice"]

Control = Literal["rate", "pitch", "energy"]


@dataclass(frozen=True, slots=True)
class Controls:
    """How to say it: factors on speed (0.5 to 3) and F0 (0.5 to 2), and in whose voice."""

    rate: float = 1.0
    pitch: float = 1.0
    speaker: str = ""
    """One of `Voice.speakers`; empty for the one it was loaded with."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What a voice knows of a segment before its samples: lengths and word starts, in samples."""

    words: tuple[int, ...]
    """First sample of each `Segment.words` entry, from the first sample of the segment."""
    marks: tuple[int, ...]
    samples: int
    """Length of the segment without its pause."""


class Speech(Protocol):
    """A segment being synthesised: its samples chunk by chunk, and its timing."""

    @property
    def settled(self) -> bool:
        """Whether `timing` is known; true before the last chunk at the latest.

        Where it is not, asking for `timing` takes its time, and more than the next chunk follows.
        """
        ...

    @property
    def timing(self) -> Timing:
        """Lengths and places, the same whenever it is asked for."""
        ...

    @property
    def encoded_ns(self) -> int:
        """When enough was known for the first chunk (CLOCK_MONOTONIC)."""
        ...

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What of the segment this voice has no sound for."""
        ...

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """Yield mono samples in [-1, 1] at the voice's rate, `timing.samples` in all."""
        ...


class Voice(Protocol):
    """A loaded voice. Threads that call it take turns, but where its networks run.

    A `Speech` is asked by one thread at a time.
    """

    name: str
    sample_rate: int
    languages: tuple[str, ...]
    speakers: tuple[str, ...]
    controls: tuple[Control, ...]
    runtime: str
    parallel: bool
    """Its chunks are short, and several threads may be in its networks at once. Not where a run
    keeps all cores busy by itself, nor where it can be left in its middle."""

    @property
    def network_ns(self) -> int:
        """Time that the calling thread spent in its networks since it was loaded, in ns."""
        ...

    def speak(self, segment: Segment, controls: Controls, abandon: Callable[[], bool]) -> Speech:
        """Begin a segment.

        Heads and tails are trimmed to 10 ms of silence; pauses between segments are the worker's.

        Raises:
            AbandonedError: `abandon()` turned true; asked at least once a chunk, and from
                another thread while a long run of a network goes on.
            RuntimeFailedError: the network refused.
        """
        ...

    def close(self) -> None:
        """Free the runtime."""
        ...
