"""What markup says about a text besides its characters, by position in the original."""

from dataclasses import dataclass, field

from utterd.engine.frontend.mapped import Mapped


@dataclass(frozen=True, slots=True)
class Style:
    """How characters `start` to `end` are to be said; factors on the utterance's own."""

    start: int
    end: int
    rate: float = 1.0
    pitch: float = 1.0
    volume: float = 1.0
    language: str = ""
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause asked for in front of the character at `position`; None: as the text has it."""

    position: int
    ms: int | None
    asked: bool = False
    """By a `break`, not by the structure of the text."""


@dataclass(frozen=True, slots=True)
class MarkAt:
    """A named place in front of the character at `position`."""

    position: int
    name: str


@dataclass(slots=True)
class Document:
    """A text to read, with what its markup asks for; all in order of position."""

    text: Mapped
    styles: list[Style] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    marks: list[MarkAt] = field(default_factory=list)

    def style_at(self, position: int) -> Style:
        """Return the innermost style over a character."""
        for style in reversed(self.styles):
            if style.start <= position < style.end:
                return style
        return _PLAIN


_PLAIN = Style(0, 0)
