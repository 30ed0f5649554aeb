"""The last stage: a clause to phonemes, words and what has no sound."""

import re
from collections.abc import Mapping, Sequence

from utterd.engine.frontend.contract import Phoneme, Skipped, Syllable, Word
from utterd.engine.frontend.english import sentence as english
from utterd.engine.frontend.english.words import EnglishWords
from utterd.engine.frontend.erhua import Unit
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.phonemes import syllable
from utterd.engine.frontend.segments import Clause
from utterd.engine.frontend.words import Token

# How marks are written for the voice: its alphabet has the Western ones.
MARKS = {
    "，": ",",
    "、": ",",
    "。": ".",
    "！": "!",
    "？": "?",
    "；": ";",
    "：": ":",
    "…": "…",
    "—": "—",
    "“": "“",
    "”": "”",
    "（": "(",
    "）": ")",
    "《": "“",
    "》": "”",
    "〈": "“",
    "〉": "”",
    "「": "“",
    "」": "”",
    "『": "“",
    "』": "”",
    "【": "“",
    "】": "”",
    "〔": "(",
    "〕": ")",
    "［": "(",
    "］": ")",
    "[": "(",
    "]": ")",
    "(": "(",
    ")": ")",
    ",": ",",
    ".": ".",
    "!": "!",
    "?": "?",
    ";": ";",
    ":": ":",
    "|": ",",
    "–": "—",
}
_OPENING = frozenset("“(")
_SILENT = frozenset(" \n\t\"'`*_~-/\\{}<>^#·•.～々〜﹏↵＿￣ˉ§¶†‡●○◆◇■□▲▼★☆→←↑↓⇒°")
ENGLISH = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*'?")
_RUN = re.compile(r"[A-Za-z']+(?:[ -]+[A-Za-z']+)*")


class Composer:
    """Collects the phonemes of one clause."""

    def __init__(self) -> None:
        self.phonemes: list[Phoneme] = []
        self.words: list[Word] = []
        self._gap = False

    def gap(self) -> None:
        """A space is due before the next word."""
        self._gap = bool(self.phonemes)

    def word(self, start: int, end: int, symbols: str) -> None:
        """Add a word; two in a row over the same text count as one."""
        if self._gap and self.phonemes[-1].symbol not in " “(":
            self.phonemes.append(Phoneme(" ", start, start))
        self._gap = False
        last = self.words[-1] if self.words else None
        if last and start < last.end:
            self.words[-1] = Word(last.start, max(last.end, end), last.first)
        else:
            self.words.append(Word(start, end, len(self.phonemes)))
        self.phonemes += [Phoneme(symbol, start, end) for symbol in symbols]

    def more(self, start: int, end: int, symbols: str) -> None:
        """Add a further syllable to the last word."""
        last = self.words[-1]
        self.words[-1] = Word(last.start, max(last.end, end), last.first)
        self.phonemes += [Phoneme(symbol, start, end) for symbol in symbols]

    def mark(self, start: int, end: int, symbol: str) -> None:
        """Add a mark; of several pauses in a row the first counts."""
        if symbol in _OPENING:
            if self.phonemes and self.phonemes[-1].symbol != " ":
                self.phonemes.append(Phoneme(" ", start, start))
        elif not self.phonemes or (self.phonemes[-1].symbol in ",;:.!?…—" and symbol in ",;:.…—"):
            return
        self.phonemes.append(Phoneme(symbol, start, end))
        self._gap = symbol not in _OPENING


def compose(
    mapped: Mapped,
    clause: Clause,
    units: Sequence[Unit],
    spoken: Sequence[str],
    tokens: Sequence[Token],
    *,
    english_words: EnglishWords,
    own: Mapping[str, str],
) -> tuple[Composer, list[Syllable], list[Skipped]]:
    """Read a clause of a normalised sentence; `own` are the user's phonemes of words of letters."""
    start, end = clause.start, clause.end
    out = Composer()
    syllables: list[Syllable] = []
    skipped: list[Skipped] = []
    heads = {token.start for token in tokens}
    at_start = {unit.start: i for i, unit in enumerate(units) if start <= unit.start < end}
    said = _english(mapped.text, start, end, english_words, own)
    i = start
    while i < end:
        unit_index = at_start.get(i)
        if unit_index is not None:
            unit = units[unit_index]
            first, last = mapped.span(unit.start, unit.end)
            symbols = syllable(spoken[unit_index])
            syllables.append(Syllable(unit.text, unit.pinyin, spoken[unit_index], first, last))
            if i in heads or not out.words or (i and mapped.text[i - 1].isascii()):
                out.gap()
                out.word(first, last, symbols)
            else:
                out.more(first, last, symbols)
            i = unit.end
            continue
        if i in said:
            stop, symbols = said[i]
            first, last = mapped.span(i, stop)
            out.gap()
            if symbols:
                out.word(first, last, symbols)
            i = stop
            continue
        i = _other(mapped, i, end, out, skipped)
    return out, syllables, skipped


def _english(
    text: str, start: int, end: int, lexicon: EnglishWords, own: Mapping[str, str]
) -> dict[int, tuple[int, str]]:
    """Return the end and the phonemes of each English word by its place."""
    found: dict[int, tuple[int, str]] = {}
    for run in _RUN.finditer(text, start, end):
        matches = list(ENGLISH.finditer(text, run.start(), run.end()))
        spoken = english.read([m.group() for m in matches], lexicon)
        for match, symbols in zip(matches, spoken, strict=True):
            found[match.start()] = (match.end(), own.get(match.group(), symbols))
    return found


def _other(mapped: Mapped, i: int, end: int, out: Composer, skipped: list[Skipped]) -> int:
    """Handle a character that is no syllable and no English; return the next index."""
    c = mapped.text[i]
    first, last = mapped.span(i, i + 1)
    if c in MARKS:
        out.mark(first, last, MARKS[c])
    elif c in _SILENT or c.isspace():
        out.gap()
    else:
        stop = i + 1
        while stop < end and _same_kind(c, mapped.text[stop]):
            stop += 1
        first, last = mapped.span(i, stop)
        reason = "no known reading" if c.isalpha() else "unknown symbol"
        skipped.append(Skipped(first, last, mapped.text[i:stop], reason))
        out.gap()
        return stop
    return i + 1


def _same_kind(c: str, other: str) -> bool:
    return (
        c.isalpha()
        and other.isalpha()
        and not other.isascii()
        and not c.isascii()
        and not ("\u3400" <= other <= "\u9fff")
    )
