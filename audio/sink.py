"""What the player needs of a sink; the device, the WAV file and the null sink provide it."""

import time
from dataclasses import dataclass
from typing import Literal, Protocol

from utterd.audio._callback import Core

Reason = Literal["missing", "busy", "vanished", "stalled", "failed"]


class SinkError(Exception):
    """A sink can't be opened or has stopped.

    Args:
        reason: The class of trouble, for programs.
        message: One line for people: what happened, to what, and what to do.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Format:
    """How a sink was opened."""

    device: str
    rate: int
    """Hz."""
    channels: int
    period_frames: int
    latency_ms: float
    speed: float = 1.0
    """How much faster than time it takes samples."""


class Sink(Protocol):
    """Something that takes samples at the pace of a clock, by calling the C callback."""

    name: str
    """As configured; for messages."""

    def open(self) -> Format:
        """Open it and return once it takes sound.

        Raises:
            SinkError: It can't be opened now.
        """

    def trouble(self) -> SinkError | None:
        """What is known to have gone wrong since it was opened."""

    def close(self) -> None:
        """End the callbacks and let go of the sink. Once it returns none runs any more."""

    def release(self) -> None:
        """As `close`, of a sink that works: the next `open` may be quick about it."""


def takes_sound(core: Core, frames: int, seconds: float) -> bool:
    """Wait until the sink has taken so many more frames.

    Args:
        core: The audio thread's data.
        frames: How many are enough.
        seconds: How long to wait at most.
    """
    enough = core.taken + frames
    until = time.monotonic() + seconds
    while core.taken < enough:
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True
