"""A book of phrases and their readings, and the choice of those that cover a text best."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import groupby

_ALIGNED = 0.8
"""What the end of a phrase is worth when it is the end of a word."""
_UNPACKED = 512
"""First characters whose phrases are kept unpacked."""


class PhraseBook:
    """Phrases by their text; a phrase that is added again is replaced.

    Nearly fifty thousand are seldom asked for: they stay as the lines they come in, and those of
    one first character are unpacked when it is met.

    Args:
        lines: `phrase<TAB>syllables`, sorted.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        groups = groupby(lines, key=lambda line: line[0])
        self._packed = {first: "\n".join(group) for first, group in groups}
        self._added: dict[str, dict[str, str]] = {}
        self._of = lru_cache(_UNPACKED)(self._unpack)

    def add(self, phrase: str, readings: str) -> None:
        """Add a phrase with its syllables, separated by spaces."""
        self._added.setdefault(phrase[0], {})[phrase] = readings
        self._of.cache_clear()

    def get(self, phrase: str) -> str | None:
        """Return the readings of a phrase, or None."""
        return self._of(phrase[0])[0].get(phrase)

    def _unpack(self, first: str) -> tuple[dict[str, str], int]:
        """Return the phrases that begin with a character, and the length of the longest."""
        packed = self._packed.get(first)
        entries = dict(line.split("\t") for line in packed.split("\n")) if packed else {}
        entries.update(self._added.get(first, {}))
        return entries, max(map(len, entries), default=1)

    def cover(self, text: str, boundaries: frozenset[int]) -> list[tuple[int, int]]:
        """Choose phrases for a text: long ones, and such as begin and end where words do.

        Returns start and end of each chosen phrase, in order and without overlap.
        """
        n = len(text)
        best = [0.0] * (n + 1)
        size_at = [1] * n
        for at in range(n - 1, -1, -1):
            top, top_size = best[at + 1] + 1, 1
            entries, longest = self._of(text[at])
            limit = min(longest, n - at)
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


def load(lines: Iterable[str], usual: Mapping[str, str], book: PhraseBook) -> None:
    """Add lines of `phrase<TAB>readings`; `_` stands for the usual reading of a character."""
    for line in lines:
        phrase, _, readings = line.partition("\t")
        if "_" in readings:
            parts = readings.split(" ")
            readings = " ".join(
                usual[c] if r == "_" else r for c, r in zip(phrase, parts, strict=True)
            )
        book.add(phrase, readings)
