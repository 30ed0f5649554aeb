"""What the scheduler decides, as values: the service carries them out."""

from dataclasses import dataclass

from utterd.daemon import events
from utterd.engine import messages as engine


@dataclass(frozen=True, slots=True)
class Emit:
    """Publish an event, not before `at_ns`."""

    event: events.Event
    at_ns: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Send a piece to speak to the worker of a voice."""

    voice: str
    message: engine.Say


@dataclass(frozen=True, slots=True)
class Need:
    """A worker for this voice is wanted."""

    voice: str


@dataclass(frozen=True, slots=True)
class Silent:
    """What a ticket asked to silence is silent."""

    ticket: int
    silent_ns: int
    """When, at the DAC; 0 where nothing was sounding."""
    cancelled: int
    """How many utterances that ended."""


Instruction = Emit | Send | Need | Silent
