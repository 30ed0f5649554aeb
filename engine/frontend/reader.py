"""The front end: text in, segments with phonemes out."""

import re
from pathlib import Path
from typing import Literal

import opencc

from utterd.engine.frontend import numbers, sandhi
from utterd.engine.frontend.contract import Analysis, Phoneme, Segment, Skipped, Syllable, Word
from utterd.engine.frontend.english.words import EnglishWords
from utterd.engine.frontend.mapped import Edit, Mapped
from utterd.engine.frontend.phonemes import syllable
from utterd.engine.frontend.readings import Readings

_NUMBER = re.compile(r"\d+(?:\.\d+)?%?")
_TOKEN = re.compile(
    r"(?P<zh>[\u3400-\u4dbf\u4e00-\u9fff]+)|(?P<en>[A-Za-z]+(?:'[A-Za-z]+)*)|(?P<other>.)", re.S
)
_PAUSES = {
    "。": 400,
    "！": 400,
    "？": 400,
    ".": 400,
    "!": 400,
    "?": 400,
    "；": 300,
    ";": 300,
    "，": 180,
    ",": 180,
    "：": 220,
    ":": 220,
    "、": 120,
    "\n": 450,
    "…": 400,
    "—": 200,
}
_SYMBOLS = {
    "，": ",",
    "。": ".",
    "！": "!",
    "？": "?",
    "；": ";",
    "：": ":",
    "、": ",",
    "…": "…",
    "—": "—",
    ",": ",",
    ".": ".",
    "!": "!",
    "?": "?",
    ";": ";",
    ":": ":",
    "“": "“",
    "”": "”",
    "（": "(",
    "）": ")",
}


class Reader:
    """Reads text of one user; keep one a worker."""

    def __init__(self, lexicon: Path | None = None) -> None:
        self._lexicon = lexicon
        self._simplify = opencc.OpenCC("t2s")
        self._readings = Readings()
        self._english = EnglishWords()

    def analyse(
        self,
        text: str,
        *,
        offset: int = 0,
        language: str = "",
        format: Literal["plain", "ssml"] = "plain",  # noqa: A002 - the protocol's own name
    ) -> Analysis:
        """Read a text. `offset` is its place in the whole text of the utterance."""
        mapped = Mapped.of(text, offset)
        clean = "".join(
            " " if 0xD800 <= ord(c) <= 0xDFFF or ord(c) < 32 and c != "\n" else c for c in text
        )
        simple = self._simplify.convert(clean)
        mapped = (
            mapped.edit([(0, len(text), simple if len(simple) == len(text) else clean)])
            if text
            else mapped
        )
        edits: list[Edit] = []
        for m in _NUMBER.finditer(mapped.text):
            edits.append((m.start(), m.end(), _number(m.group())))
        mapped = mapped.edit(edits)
        segments: list[Segment] = []
        skipped: list[Skipped] = []
        at = 0
        for m in re.finditer(r"[^。！？；，,!?;\n]*(?:[。！？；，,!?;\n]+|$)", mapped.text):
            if m.group():
                segment = self._segment(mapped.piece(m.start(), m.end()), skipped)
                if segment.phonemes:
                    segments.append(segment)
            at = m.end()
        return Analysis(text, mapped.text, tuple(segments), tuple(skipped))

    def _segment(self, mapped: Mapped, skipped: list[Skipped]) -> Segment:
        syllables: list[Syllable] = []
        phonemes: list[Phoneme] = []
        words: list[Word] = []
        pause = 0
        letters = 0
        for m in _TOKEN.finditer(mapped.text):
            first, last = mapped.span(m.start(), m.end())
            if m.lastgroup == "zh":
                readings = self._readings.read(m.group())
                spoken = sandhi.apply(m.group(), readings)
                at = m.start()
                starts: set[int] = set()
                for size in sandhi.words(m.group()):
                    starts.add(at)
                    at += size
                for i, (pinyin, said) in enumerate(zip(readings, spoken, strict=True), m.start()):
                    start, end = mapped.starts[i], mapped.ends[i]
                    if not pinyin:
                        skipped.append(Skipped(start, end, mapped.text[i], "no reading"))
                        continue
                    if i in starts:
                        if phonemes and phonemes[-1].symbol != " ":
                            phonemes.append(Phoneme(" ", start, start))
                        words.append(Word(start, end, len(phonemes)))
                    elif words:
                        words[-1] = Word(words[-1].start, end, words[-1].first)
                    syllables.append(Syllable(mapped.text[i], pinyin, said, start, end))
                    phonemes += [Phoneme(p, start, end) for p in syllable(said)]
            elif m.lastgroup == "en":
                said = self._english.read(m.group())
                if phonemes and phonemes[-1].symbol != " ":
                    phonemes.append(Phoneme(" ", first, first))
                words.append(Word(first, last, len(phonemes)))
                phonemes += [Phoneme(p, first, last) for p in said]
                letters += 1
            elif m.group() in _SYMBOLS or m.group() == "\n":
                pause = max(pause, _PAUSES.get(m.group(), 0))
                if m.group() != "\n" and phonemes:
                    phonemes.append(Phoneme(_SYMBOLS[m.group()], first, last))
            elif not m.group().isspace():
                skipped.append(Skipped(first, last, m.group(), "unknown symbol"))
        start, end = mapped.span(0, len(mapped.text))
        language = "en" if letters > len(syllables) else "zh"
        return Segment(
            mapped.text,
            start,
            end,
            language,
            tuple(syllables),
            tuple(phonemes) if words else (),
            tuple(words),
            pause,
        )


def _number(text: str) -> str:
    percent = "百分之" if text.endswith("%") else ""
    whole, _, fraction = text.rstrip("%").partition(".")
    if fraction:
        return percent + numbers.decimal(whole, fraction)
    if not percent and (len(whole) > 6 or whole.startswith("0") and len(whole) > 1):
        return numbers.digits(whole, yao=True)
    return percent + numbers.cardinal(whole)
