"""What the front end hands to a voice.

Offsets are characters (code points) of the text as the client sent it; they survive every stage,
so that a word that is heard can be shown in the original text.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Syllable:
    """One spoken syllable of Chinese."""

    text: str
    """The character(s) it reads."""
    pinyin: str
    """Dictionary reading, tone 1 to 5 as a digit, `v` for ü."""
    spoken: str
    """The same after tone sandhi."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Phoneme:
    """One symbol of Kokoro's alphabet (one character) and the text it comes from."""

    symbol: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """A word as a caption would highlight it."""

    start: int
    end: int
    first: int
    """Index of its first phoneme in the segment."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A named place (SSML `mark`) before phoneme `first`."""

    name: str
    first: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A piece of text that has no sound, and why."""

    start: int
    end: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A clause that a voice synthesises at once."""

    text: str
    """Normalised text, for voices that bring their own phonemes."""
    start: int
    end: int
    language: str
    """`zh` or `en`: the language of most of it."""
    syllables: tuple[Syllable, ...]
    phonemes: tuple[Phoneme, ...]
    words: tuple[Word, ...]
    pause_ms: int
    """Silence to leave behind it, at rate 1."""
    marks: tuple[Mark, ...] = ()
    rate: float = 1.0
    """Prosody asked for by markup, a factor on the utterance's own."""
    pitch: float = 1.0
    volume: float = 1.0
    speaker: str = ""
    """Style or speaker asked for by markup; empty for the utterance's own."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """A text read: its segments in order, and what was left out."""

    text: str
    normalized: str
    segments: tuple[Segment, ...]
    skipped: tuple[Skipped, ...] = field(default=())
