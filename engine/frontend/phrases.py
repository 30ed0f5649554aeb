"""A book of phrases and their readings, and the choice of those that cover a text best."""

from collections.abc import Iterable

_ALIGNED = 0.8
"""What the end of a phrase is worth when it is the end of a word."""


class PhraseBook:
    """Phrases by their text; a phrase that is added again is replaced."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}
        self._longest: dict[str, int] = {}

    def add(self, phrase: str, readings: str) -> None:
        """Add a phrase with its syllables, separated by spaces."""
        self._entries[phrase] = readings
        if len(phrase) > self._longest.get(phrase[0], 0):
            self._longest[phrase[0]] = len(phrase)

    def get(self, phrase: str) -> str | None:
        """Return the readings of a phrase, or None."""
        return self._entries.get(phrase)

    def __len__(self) -> int:
        return len(self._entries)

    def cover(self, text: str, boundaries: frozenset[int]) -> list[tuple[int, int]]:
        """Choose phrases for a text: long ones, and such as begin and end where words do.

        Returns start and end of each chosen phrase, in order and without overlap.
        """
        n = len(text)
        best = [0.0] * (n + 1)
        size_at = [1] * n
        entries, longest = self._entries, self._longest
        for at in range(n - 1, -1, -1):
            top, top_size = best[at + 1] + 1, 1
            limit = min(longest.get(text[at], 1), n - at)
            if limit > 1:
                aligned = _ALIGNED if at in boundaries else 0.0
                for size in range(2, limit + 1):
                    if text[at : at + size] in entries:
                        end = at + size
                        score = size * size + aligned + best[end]
                        if end in boundaries:
                            score += _ALIGNED
                        if score > top:
                            top, top_size = score, size
            best[at] = top
            size_at[at] = top_size
        chosen = []
        at = 0
        while at < n:
            if size_at[at] > 1:
                chosen.append((at, at + size_at[at]))
            at += size_at[at]
        return chosen


def load(lines: Iterable[str], usual: dict[str, str], book: PhraseBook) -> None:
    """Add lines of `phrase<TAB>readings`; `_` stands for the usual reading of a character."""
    for line in lines:
        phrase, _, readings = line.partition("\t")
        if "_" in readings:
            parts = readings.split(" ")
            readings = " ".join(
                usual[c] if r == "_" else r for c, r in zip(phrase, parts, strict=True)
            )
        book.add(phrase, readings)
