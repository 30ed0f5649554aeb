"""Events, published as `[topic, JSON]` with the event's name as topic.

Times are CLOCK_MONOTONIC in ns. Every utterance has exactly one terminal event.
"""

import msgspec

from utterd.daemon.protocol import VERSION


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """What every event carries; the publisher fills in sequence and time."""

    version: int = VERSION
    sequence: int = 0
    monotonic_ns: int = 0
    client: str = ""
    id: str = ""


class Accepted(Event, tag="accepted", frozen=True):
    """The utterance waits its turn."""

    ahead: int
    """Utterances in front of it."""


class Started(Event, tag="started", frozen=True):
    """The utterance sounds."""

    dac_ns: int
    """When its first sample above -50 dBFS reaches the DAC."""
    voice: str


class Word(Event, tag="word", frozen=True):
    """A word begins to sound."""

    start: int
    """Range of characters in the text as it was sent."""
    end: int
    dac_ns: int


class Mark(Event, tag="mark", frozen=True):
    """An SSML mark is reached."""

    name: str
    dac_ns: int


class Progress(Event, tag="progress", frozen=True):
    """A clause begins to sound."""

    start: int
    """Range of characters in the text as it was sent."""
    end: int
    dac_ns: int


class Skipped(Event, tag="skipped", frozen=True):
    """Part of the text has no sound."""

    start: int
    end: int
    text: str
    reason: str


class Paused(Event, tag="paused", frozen=True):
    """The utterance was cut and will go on: by `pause`, or displaced by a higher priority."""

    reason: str
    heard_characters: int


class Resumed(Event, tag="resumed", frozen=True):
    """It sounds again."""

    start: int
    """Character from which it goes on."""
    dac_ns: int


class Speaking(Event, tag="speaking", frozen=True):
    """Sound begins or ends: what a program lowers the music for."""

    speaking: bool


class Underrun(Event, tag="underrun", frozen=True):
    """Sound stopped because samples came too late."""

    missing_ms: float
    count: int
    """Since the daemon started."""


class Degraded(Event, tag="degraded", frozen=True):
    """Something works worse than it should."""

    what: str
    message: str


class Recovered(Event, tag="recovered", frozen=True):
    """What was degraded is well again."""

    what: str
    message: str


class DeviceLost(Event, tag="device_lost", frozen=True):
    """Nothing can be heard; the player keeps trying."""

    device: str
    reason: str
    message: str
    retry_ms: int


class DeviceBack(Event, tag="device_back", frozen=True):
    """The device is open."""

    device: str
    rate: int
    latency_ms: float


class Terminal(Event, frozen=True):
    """The last event of an utterance."""


TERMINAL = ("ended", "cancelled", "failed", "dropped")
"""Their names."""


class Ended(Terminal, tag="ended", frozen=True):
    """All of it was heard."""

    dac_ns: int
    """When the last sample reached the DAC."""
    played_ms: float
    stages: dict[str, int]
    """Stage stamps, CLOCK_MONOTONIC ns."""
    durations_ms: dict[str, float]
    """Their differences."""


class Cancelled(Terminal, tag="cancelled", frozen=True):
    """It was cut short."""

    reason: str
    heard_characters: int
    """Characters of the text up to the end of the last word that had begun to sound."""
    played_ms: float


class Failed(Terminal, tag="failed", frozen=True):
    """It could not be spoken (to the end)."""

    code: str
    message: str
    recoverable: bool
    """Whether saying it again may work."""


class Dropped(Terminal, tag="dropped", frozen=True):
    """It was never spoken."""

    reason: str


def of(event: Event, client: str, id_: str) -> Event:
    """The event, of this utterance."""
    return msgspec.structs.replace(event, client=client, id=id_)


_encoder = msgspec.json.Encoder()


def encode(event: Event) -> tuple[bytes, bytes]:
    """Topic and body."""
    return str(event.__struct_config__.tag).encode(), _encoder.encode(event)
