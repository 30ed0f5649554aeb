"""Text that knows where it came from.

Every stage before the readings rewrites text. `Mapped` carries, for each character of the rewritten
text, the range of the original it stands for, and the reading that an earlier stage already knows
(inline pinyin, SSML, digits of a telephone number).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Edit = tuple[int, int, "str | Mapped"]
"""Start, end and replacement of a piece of a `Mapped` text."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """Text with the source range of each character.

    `starts` and `ends` are as long as `text`; both never decrease. `readings` maps indices to a
    pinyin syllable with its tone digit (`` for a character that is silent because its neighbour
    says both).
    """

    text: str
    starts: list[int]
    ends: list[int]
    readings: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, offset: int = 0) -> "Mapped":
        """Map each character to itself, `offset` characters into the original."""
        n = len(text)
        return cls(text, list(range(offset, offset + n)), list(range(offset + 1, offset + n + 1)))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the original under the characters `start` to `end` (not empty)."""
        return self.starts[start], self.ends[end - 1]

    def piece(self, start: int, end: int) -> "Mapped":
        """Cut out the characters `start` to `end`."""
        readings = {i - start: r for i, r in self.readings.items() if start <= i < end}
        return Mapped(self.text[start:end], self.starts[start:end], self.ends[start:end], readings)

    def whole(self, start: int, end: int, text: str) -> "Mapped":
        """Let every character of `text` stand for the whole range under `start` to `end`."""
        first, last = self.span(start, end)
        return Mapped(text, [first] * len(text), [last] * len(text))

    def edit(self, edits: Sequence[Edit]) -> "Mapped":
        """Replace pieces; `edits` are in order and do not overlap.

        A replacement that goes character for character (digits to their names, one script to
        another) keeps the source range of each, another string stands for the whole range, and a
        `Mapped` brings its own ranges.
        """
        if not edits:
            return self
        parts: list[Mapped] = []
        at = 0
        for start, end, new in edits:
            if at < start:
                parts.append(self.piece(at, start))
            if isinstance(new, Mapped):
                parts.append(new)
            elif _goes_with(self.text[start:end], new):
                parts.append(Mapped(new, self.starts[start:end], self.ends[start:end]))
            else:
                parts.append(self.whole(start, end, new))
            at = end
        if at < len(self.text):
            parts.append(self.piece(at, len(self.text)))
        return join(parts)


def _goes_with(old: str, new: str) -> bool:
    """Tell whether each character of `new` stands for the one at its place in `old`."""
    return len(old) == len(new) and all(
        a == b
        or (a.isdecimal() and b in "零一二三四五六七八九幺两")
        or (a == "." and b == "点")
        or a.isascii() == b.isascii() == (not a.isdecimal() and a.isascii())
        for a, b in zip(old, new, strict=True)
    )


def join(parts: Iterable[Mapped]) -> Mapped:
    """Put pieces together, in order."""
    texts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    readings: dict[int, str] = {}
    for part in parts:
        if part.readings:
            at = len(starts)
            readings.update((at + i, r) for i, r in part.readings.items())
        texts.append(part.text)
        starts += part.starts
        ends += part.ends
    return Mapped("".join(texts), starts, ends, readings)
