"""Messages between the daemon and the player, one msgpack struct a SOCK_SEQPACKET packet.

Times are CLOCK_MONOTONIC in ns, positions are samples of the utterance at the rate of its voice.
Gain, pause and the fence are not messages: they live in shared memory (`utterd.audio.ring`).
"""

from typing import Literal

import msgspec

SinkKind = Literal["device", "wav", "null"]


class Configure(msgspec.Struct, tag=True, frozen=True):
    """Daemon to player, once, as the first message: where to play and how."""

    sink: SinkKind = "device"
    """`device`: PortAudio; `wav`: a file written at the pace of a device; `null`: paced silence."""
    device: str = "default"
    """`default`, or a stable part of the device's name (never an index)."""
    wav_path: str = ""
    """Where the `wav` sink writes."""
    rate: int = 0
    """Rate of the sink in Hz; 0 means the device's own (48000 for `wav` and `null`)."""
    period_ms: float = 5.0
    """The device buffers four of them."""
    ramp_ms: float = 5.0
    """Length of the ramps at fences, pauses and the edges of gaps."""
    speed: float = 1.0
    """How much faster than a real device `wav` and `null` run (tests only)."""
    release_after_s: float = 0.0
    """Let go of the sink after so long without sound; 0: never. See `Expect` and `Released`."""
    wake_ms: float = 0.0
    """Sound begins so long after the sink was opened, for those that swallow the first of it."""
    noise: bool = False
    """Fill silence with noise of -90 dBFS, for sinks that fall asleep over zeros."""
    role: str = ""
    """What sound servers are told that this sound is, such as `Notification`; "": nothing."""
    reference: str = ""
    """Socket file at which what is played is published; "" for none."""
    reference_gid: int = -1
    """Group that may subscribe to it; -1: as the file is made."""


class Expect(msgspec.Struct, tag=True, frozen=True):
    """Daemon to player: whether sound is on its way.

    A released sink is opened at once when it is, and none is released before it no longer is.
    """

    sound: bool


class Shutdown(msgspec.Struct, tag=True, frozen=True):
    """Daemon to player: fade, close the device, exit 0."""


class Opened(msgspec.Struct, tag=True, frozen=True):
    """The sink is open and its callback runs."""

    device: str
    rate: int
    """Hz."""
    channels: int
    period_frames: int
    latency_ms: float
    """Output latency as the host API reports it."""
    realtime: bool
    """Whether SCHED_FIFO was granted to the audio thread."""
    memory_locked: bool
    ns: int


class Released(msgspec.Struct, tag=True, frozen=True):
    """The sink was let go for want of sound; it is opened again, and told so, when there is any."""

    ns: int


class DeviceLost(msgspec.Struct, tag=True, frozen=True):
    """The sink can't be opened or has stopped; the player keeps trying."""

    device: str
    reason: Literal["missing", "busy", "vanished", "stalled", "failed"]
    message: str
    """One line: what happened, to what, and what to do."""
    retry_ms: int
    """Time until the next try."""
    ns: int


class Started(msgspec.Struct, tag=True, frozen=True):
    """The first sample of a generation, and its first sample above -50 dBFS.

    Sent once a generation, when the first sample above -50 dBFS is handed to the device (or with
    the last sample, where all are below).
    """

    generation: int
    first_sample_ns: int
    """When the first sample reaches the DAC."""
    first_sound_ns: int
    """When the first sample above -50 dBFS reaches the DAC."""


class Anchor(msgspec.Struct, tag=True, frozen=True):
    """From here on, sample `position` of the generation reaches the DAC at `dac_ns`.

    Sent with the first sample of a generation and after everything that shifts the clock of what
    follows: an underrun, a pause, a reopened device.
    """

    generation: int
    position: int
    dac_ns: int


class Ended(msgspec.Struct, tag=True, frozen=True):
    """The last sample of a generation was handed to the device."""

    generation: int
    samples: int
    """Samples of the utterance played, at the rate of the voice."""
    dac_ns: int
    """When the last one reaches the DAC."""


class Dropped(msgspec.Struct, tag=True, frozen=True):
    """A generation was fenced or revoked while part of it was in the ring or playing.

    Sent once for a generation of which the player has seen at least one sample.
    """

    generation: int
    samples: int
    """Position of the last sample that sounded, 0 if none did."""
    silent_ns: int
    """When the device has nothing of it left to sound (end of the ramp at the DAC)."""


class Paused(msgspec.Struct, tag=True, frozen=True):
    """The player is silent because of a pause. The end of the pause shows as an `Anchor`."""

    generation: int
    """What was playing, 0 if nothing was."""
    position: int
    """Position of the sample with which sound will go on."""
    silent_ns: int
    """End of the ramp at the DAC."""


class Underrun(msgspec.Struct, tag=True, frozen=True):
    """The ring ran dry inside a generation, or the host API reported an underflow."""

    generation: int
    position: int
    """Position of the first missing sample; -1 if only the host API noticed."""
    missing_ms: float
    """Length of the gap, 0 if only the host API noticed."""
    count: int
    """Underruns since the player started."""
    ns: int


class Alive(msgspec.Struct, tag=True, frozen=True):
    """Sent about once a second."""

    rss_bytes: int
    underruns: int
    ns: int
    subscribed: bool = False
    """Whether anybody subscribes to the reference stream."""
    reference_frames: int = 0
    """Copied for it since the player started."""
    reference_dropped: int = 0
    """Not copied for want of room."""
    reference_problem: str = ""
    """Why it is not published."""


ToPlayer = Configure | Expect | Shutdown
FromPlayer = (
    Opened | Released | DeviceLost | Started | Anchor | Ended | Dropped | Paused | Underrun | Alive
)
