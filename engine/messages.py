"""Messages between the daemon and a worker, one msgpack struct a SOCK_SEQPACKET packet.

Times are CLOCK_MONOTONIC in ns; positions are samples of the generation at the voice's rate;
`start` and `end` are character offsets in the whole text of the utterance.
Cancelling is not a message: the worker watches the fence in shared memory.
"""

from typing import Literal

import msgspec


class Configure(msgspec.Struct, tag=True, frozen=True):
    """Daemon to worker, once, as the first message."""

    voice_dir: str
    """Folder of the voice package (holds `voice.toml`)."""
    threads: int = 0
    """Threads of one run, or runs at once of a voice that takes one; 0: one a core, at most 4."""
    verify: bool = True
    """Compare the package with its checksums; not where this daemon's last worker has."""
    warm: bool = True
    """Run the network before `Ready`; not where a text waits: it is sooner spoken without."""
    lexicon: str = ""
    """Path of the user's lexicon; empty for none."""
    emoji: Literal["name", "silent", "skip"] = "skip"
    """Say their names, leave them out, or leave them out and report them as skipped."""
    cache_memory_bytes: int = 0
    """Samples of what was said lately that are held in memory; 0: none."""
    cache_disk_bytes: int = 0
    """The same on disk, for all voices together, of what was said twice; 0: none."""
    cache_dir: str = ""
    """Folder of what is on disk."""
    cache_ttl_s: float = 604_800.0
    """What was not said for so long is forgotten."""


class Say(msgspec.Struct, tag=True, frozen=True):
    """Speak a piece of text. Pieces of one generation are spoken in the order they arrive."""

    generation: int
    utterance: str
    """The utterance's id, for the log."""
    text: str
    offset: int = 0
    """Character offset of `text` in the whole text of the utterance."""
    final: bool = True
    """Nothing follows in this generation."""
    to: Literal["ring", "daemon"] = "ring"
    """`daemon`: answer with `Pcm` messages instead of writing to the ring."""
    begin: int = 0
    """Character offset in the whole text from which to speak: segments that end at or before it
    are read (for context) and left out, so that what was interrupted goes on from a clause."""
    position: int = 0
    """Position of the first sample of this text: not 0 where a lost worker's work goes on."""
    written: int = 0
    """Samples before this position are in the ring already and are not written again."""
    speaker: str = ""
    """Style or speaker inside the package; empty for its default."""
    language: str = ""
    """BCP 47; empty lets the front end tell by the script."""
    rate: float = 1.0
    """Speed, 0.5 to 3."""
    pitch: float = 1.0
    """Factor on F0, 0.5 to 2; voices that can't say so in `Ready.controls`."""
    volume: float = 1.0
    """Linear gain, 0 to 2."""
    format: Literal["plain", "ssml", "sound"] = "plain"
    """`sound`: the text is the path of a sound file to play."""


class Abandon(msgspec.Struct, tag=True, frozen=True):
    """Forget a generation that goes `to="daemon"` (the fence speaks for the ring's)."""

    generation: int


class Forget(msgspec.Struct, tag=True, frozen=True):
    """Empty the cache of this voice, in memory and on disk, behind what is spoken now."""


class Shutdown(msgspec.Struct, tag=True, frozen=True):
    """Exit 0 at once, in the middle of a chunk too."""


class Ready(msgspec.Struct, tag=True, frozen=True):
    """The voice is loaded and warm."""

    voice: str
    sample_rate: int
    """Hz."""
    languages: list[str]
    speakers: list[str]
    controls: list[Literal["rate", "pitch", "energy"]]
    runtime: str
    """What really runs it, such as `onnxruntime-cpu`."""
    load_ms: float
    warm_ms: float
    real_time_factor: float
    """Synthesis time per time of speech, measured while warming; 0 where it did not warm."""
    parallel: bool
    """Its chunks are short, and those of several texts are made side by side."""


class Broken(msgspec.Struct, tag=True, frozen=True):
    """The voice can't be loaded. The worker exits 1 after it."""

    message: str
    """One line: what happened, to what, and what to do."""


class FirstAudio(msgspec.Struct, tag=True, frozen=True):
    """The first chunk of a generation is in the ring (or was sent): the stages up to here."""

    generation: int
    received_ns: int
    started_synthesis_ns: int
    phonemes_ns: int
    encoded_ns: int
    first_chunk_ns: int
    first_written_ns: int


class Word(msgspec.Struct, frozen=True, array_like=True):
    """A word and the sample at which it begins."""

    start: int
    end: int
    position: int


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """An SSML mark and the sample at which it stands."""

    name: str
    position: int


class Skipped(msgspec.Struct, frozen=True, array_like=True):
    """Something that was not spoken, and why."""

    start: int
    end: int
    text: str
    reason: str


class Segment(msgspec.Struct, tag=True, frozen=True):
    """What a segment says and when. Sent before its last chunk is written."""

    generation: int
    index: int
    start: int
    end: int
    position: int
    """Position of its first sample."""
    samples: int
    """Its length, the pause behind it included."""
    words: list[Word]
    marks: list[Mark]
    skipped: list[Skipped]
    last: bool
    """The final segment of the generation."""
    pause: int = 0
    """Samples of the pause behind it."""


class Pcm(msgspec.Struct, tag=True, frozen=True):
    """Samples for `to="daemon"`: mono float32, little-endian, at most 19,200 a message."""

    generation: int
    position: int
    data: bytes


class Finished(msgspec.Struct, tag=True, frozen=True):
    """All samples of the generation are written (or sent)."""

    generation: int
    samples: int
    synthesis_ms: float
    """Time spent in the voice's networks."""
    overhead_ms: float
    """Time spent on everything else: front end, copying, messages (not waiting for the ring)."""


class Abandoned(msgspec.Struct, tag=True, frozen=True):
    """The generation was fenced, revoked or abandoned; nothing more of it will be written."""

    generation: int
    samples: int


class Failed(msgspec.Struct, tag=True, frozen=True):
    """The generation can't be spoken further. The worker goes on with the next."""

    generation: int
    code: Literal["bad_request", "internal", "unavailable"]
    message: str
    samples: int
    """Written before the failure."""


class CacheCounts(msgspec.Struct, frozen=True, array_like=True):
    """What the cache did since the voice was loaded, and what it holds."""

    hits: int
    """Segments that were known."""
    disk_hits: int
    """Those of them that were on disk only."""
    misses: int
    evictions: int
    """For want of room, or of use."""
    damaged: int
    """Entries or databases that were not what had been written."""
    entries: int
    """In memory."""
    bytes: int
    """In memory."""
    disk_bytes: int
    """Of all voices."""
    problem: str
    """Why the disk is not used although it should be; one line."""


class Alive(msgspec.Struct, tag=True, frozen=True):
    """Sent about once a second, whatever the threads that speak are doing."""

    rss_bytes: int
    progress: int
    """Grows with every chunk and every message; stands still when the worker hangs or idles."""
    busy: bool
    """It works on something, and does not just wait for room in the ring."""
    ns: int
    cache: CacheCounts | None = None
    """None: it has no cache."""


class Fork(msgspec.Struct, tag=True, frozen=True):
    """Daemon to nursery: fork a worker.

    With four descriptors: the worker's control channel, the ring, the player's eventfd, and the
    socket for news of its birth and end.
    """

    title: str
    """What the process is called behind `utterd.engine.worker`: the voice."""


class NurseryAlive(msgspec.Struct, tag=True, frozen=True):
    """From the nursery once it can fork, then once a second."""

    rss_bytes: int


ToWorker = Configure | Say | Abandon | Forget | Shutdown
FromWorker = Ready | Broken | FirstAudio | Segment | Pcm | Finished | Abandoned | Failed | Alive
ToNursery = Fork | Shutdown
FromNursery = NurseryAlive
