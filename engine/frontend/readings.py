"""Chinese characters to their dictionary readings, in context.

In order: what markup or the user's lexicon says; rules for the characters whose reading hangs on
grammar; the longest phrase; the network, where it is sure; the usual reading.
"""

import io
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from utterd.engine.frontend import phrases, reading_rules
from utterd.engine.frontend.data_files import read_lines
from utterd.engine.frontend.polyphones import Polyphones
from utterd.engine.frontend.words import Token

SURE = 0.6
"""The network speaks only when it gives its answer at least this probability."""

_SETTLED = frozenset(
    "万上中么会令价作化区听合同号叶否和哪哇咱喂夫大头女妻居广底度强打扫抢折把据操数服术板查模正比没泥浅涨渐片"
    "王看着石症的省称空纪约节色芯脚般虾衣见觉解论识语说车过远适通那采阿隆页食饮鸟免兴卡厂句可召单占场"
)
"""Common characters that phrases and the usual reading settle: the network is not asked."""


class _Usual(Mapping[str, str]):
    """The usual reading of each character: two rows that are searched, a fifth of a dict's memory.

    Args:
        lines: `character<TAB>readings`, sorted, the usual one first.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        characters = io.StringIO()
        self._readings: list[str] = []
        for line in lines:
            characters.write(line[0])
            self._readings.append(sys.intern(line[2:].partition(" ")[0]))
        self._characters = characters.getvalue()

    def __getitem__(self, character: str) -> str:
        at = bisect_left(self._characters, character)
        if self._characters[at : at + 1] != character:
            raise KeyError(character)
        return self._readings[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._characters)

    def __len__(self) -> int:
        return len(self._characters)


class Readings:
    """Reads the Chinese characters of a sentence."""

    def __init__(self) -> None:
        self._usual = _Usual(read_lines("characters.tsv"))
        self.book = phrases.PhraseBook(read_lines("phrases.tsv"))
        phrases.load(read_lines("phrases_car.tsv"), self._usual, self.book)
        self._network = Polyphones(without=_SETTLED | reading_rules.NOT_BY_NETWORK)
        self._asked = self._network.characters | reading_rules.RULES.keys()

    def usual(self, character: str) -> str:
        """Return the usual reading of a character, or "" where it has none."""
        return self.book.get(character) or self._usual.get(character, "")

    def read(self, text: str, tokens: Sequence[Token], known: dict[int, str]) -> list[str]:
        """Return a reading for each character of a sentence ("" for what is no Chinese)."""
        out, covered = self._by_phrase(text, tokens)
        for i, reading in known.items():
            out[i] = reading
            covered[i] = True
        open_ = [i for i, c in enumerate(text) if not covered[i] and c in self._asked]
        context = reading_rules.Context(text, tokens, out, covered)
        targets = []
        for i in open_:
            found = reading_rules.decide(context, i)
            if found:
                out[i] = found
            elif text[i] in self._network and self.book.get(text[i]) is None:
                targets.append(i)
        if targets:
            for i, (reading, sure) in zip(targets, self._network.read(text, targets), strict=True):
                if sure >= SURE:
                    out[i] = reading
        _same_again(text, out, known)
        return out

    def _by_phrase(self, text: str, tokens: Sequence[Token]) -> tuple[list[str], list[bool]]:
        out = [self.usual(c) for c in text]
        covered = [False] * len(text)
        boundaries = frozenset([0, *(token.end for token in tokens)])
        for start, end in self.book.cover(text, boundaries):
            found = self.book.get(text[start:end])
            if found is not None:
                out[start:end] = found.split(" ")
                covered[start:end] = [True] * (end - start)
        return out, covered


def _same_again(text: str, readings: list[str], known: dict[int, str]) -> None:
    """Read both halves of 重不重, 数一数, 有没有 alike."""
    for i in range(2, len(text)):
        again = text[i] == text[i - 2] and text[i - 1] in "不一没了" and text[i] not in "还得一了不"
        if again and i not in known and readings[i - 2]:
            readings[i] = readings[i - 2]
