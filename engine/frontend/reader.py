"""The front end: text in, segments with phonemes out."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeVar

from utterd.engine.frontend import (
    emoji,
    erhua,
    inline,
    markup,
    sandhi,
    segments,
    silences,
    speech,
    ssml,
    words,
)
from utterd.engine.frontend.boundaries import ends
from utterd.engine.frontend.clean import clean
from utterd.engine.frontend.contract import Analysis, Segment, Skipped
from utterd.engine.frontend.emoji import EmojiPolicy
from utterd.engine.frontend.english import normalise as english_normalise
from utterd.engine.frontend.english.words import EnglishWords
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.markup_model import Document, Pause
from utterd.engine.frontend.normalise import normalise
from utterd.engine.frontend.readings import Readings
from utterd.engine.frontend.simplify import Simplify
from utterd.engine.frontend.ssml import SsmlError
from utterd.engine.frontend.user_lexicon import UserLexicon

T = TypeVar("T")

__all__ = ["Reader", "SsmlError"]

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_LATIN_WORD = re.compile(r"(?<![A-Za-z\d./@:_-])[A-Za-z][a-z]+(?![A-Za-z\d/@:_]|\.[A-Za-z])")
MAX_SENTENCE = 400
"""Characters of a sentence that are read together; a longer one is cut at a clause."""


class Reader:
    """Reads text for a voice; keep one a worker. Not for use by two threads at once."""

    def __init__(self, lexicon: Path | None = None, *, emoji_policy: EmojiPolicy = "skip") -> None:
        self.lexicon = UserLexicon(lexicon)
        self._emoji = emoji_policy
        self._simplify = _shared(Simplify)
        self._readings = _shared(Readings)
        self._english = _shared(EnglishWords)

    def analyse(
        self,
        text: str,
        *,
        offset: int = 0,
        language: str = "",
        format: Literal["plain", "ssml"] = "plain",  # noqa: A002 - the protocol's own name
    ) -> Analysis:
        """Read a whole text. `offset` is its place in the whole text of the utterance.

        Raises:
            SsmlError: `format` is `ssml` and the text is no good SSML.
        """
        parts = list(self.iterate(text, offset=offset, language=language, format=format))
        return Analysis(
            text,
            "".join(part.normalized for part in parts),
            tuple(segment for part in parts for segment in part.segments),
            tuple(skip for part in parts for skip in part.skipped),
        )

    def iterate(
        self,
        text: str,
        *,
        offset: int = 0,
        language: str = "",
        format: Literal["plain", "ssml"] = "plain",  # noqa: A002 - the protocol's own name
    ) -> Iterator[Analysis]:
        """Read a text sentence by sentence, so that the first is there at once.

        Raises:
            SsmlError: `format` is `ssml` and the text is no good SSML; before the first sentence.
        """
        self.refresh()
        if format == "ssml":
            document = ssml.parse(text, offset)
        else:
            document = Document(inline.apply(markup.strip(Mapped.of(text, offset))))
        whole = document.text
        pieces = _by_language(list(_sentences(whole.text)), document)
        parts = self._parts(pieces, document, text, offset, language)
        if format == "ssml":
            parts = _with_silences(list(parts), document, text, offset)
        yield from parts

    def refresh(self) -> bool:
        """Read the lexicon again if it changed; tell whether it did."""
        return self.lexicon.refresh()

    def _parts(
        self,
        pieces: list[tuple[int, int]],
        document: Document,
        text: str,
        offset: int,
        language: str,
    ) -> Iterator[Analysis]:
        whole = document.text
        first = True
        for start, end in pieces:
            part = self._sentence(whole.piece(start, end), document, language, first=first)
            first = first and not part.segments
            skipped = tuple(
                replace(skip, text=text[skip.start - offset : skip.end - offset])
                for skip in part.skipped
            )
            yield replace(part, skipped=skipped)

    def _sentence(self, raw: Mapped, document: Document, language: str, *, first: bool) -> Analysis:
        mapped, skipped = self._prepare(raw)
        style = document.style_at(mapped.starts[0]) if mapped.text else None
        english = _is_english(mapped.text, (style.language if style else "") or language)
        mapped = english_normalise.normalise(mapped) if english else normalise(mapped)
        text = mapped.text
        tokens = words.split(text)
        readings = self._readings.read(text, tokens, mapped.readings)
        units = erhua.units(text, readings, tokens, mapped.readings)
        spoken = sandhi.apply(text, units, tokens)
        weights = _weights(text, units)
        cuts = _cuts(mapped, document.pauses)
        found: list[Segment] = []
        for clause in segments.split(text, weights, tokens, cuts, first=first):
            composed, syllables, silent = speech.compose(
                mapped,
                clause,
                units,
                spoken,
                tokens,
                english_words=self._english,
                own=self.lexicon.phonemes,
            )
            skipped += silent
            if not composed.words:
                if found and clause.pause_ms > found[-1].pause_ms:
                    found[-1] = replace(found[-1], pause_ms=clause.pause_ms)
                continue
            start, end = mapped.span(clause.start, clause.end)
            style = document.style_at(composed.words[0].start)
            letters = sum(1 for word in composed.words) - len(syllables)
            found.append(
                Segment(
                    text[clause.start : clause.end].strip(),
                    start,
                    end,
                    "en" if english or letters > len(syllables) else "zh",
                    tuple(syllables),
                    tuple(composed.phonemes),
                    tuple(composed.words),
                    clause.pause_ms,
                    rate=style.rate,
                    pitch=style.pitch,
                    volume=style.volume,
                    speaker=style.speaker,
                )
            )
        return Analysis(raw.text, text, tuple(found), tuple(skipped))

    def _prepare(self, raw: Mapped) -> tuple[Mapped, list[Skipped]]:
        mapped, skipped = emoji.speak(raw, self._emoji)
        mapped, unspeakable = clean(mapped)
        mapped = self._simplify(mapped)
        return self.lexicon.apply(mapped), skipped + unspeakable


@cache
def _shared(kind: Callable[[], T]) -> T:
    """What is read from the data files: once a process, and in the nursery for all workers."""
    return kind()


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Cut a text into sentences, and very long sentences at clauses."""
    start = last_soft = 0
    for end, hard in ends(text):
        if end - start > MAX_SENTENCE and last_soft > start:
            yield start, last_soft
            start = last_soft
        if hard:
            if end > start:
                yield start, end
            start = end
        last_soft = end
    while len(text) - start > 2 * MAX_SENTENCE:
        yield start, start + MAX_SENTENCE
        start += MAX_SENTENCE
    if start < len(text):
        yield start, len(text)


def _by_language(pieces: list[tuple[int, int]], document: Document) -> list[tuple[int, int]]:
    """Cut sentences where markup changes the language."""
    places = {s.start for s in document.styles if s.language}
    places |= {s.end for s in document.styles if s.language}
    if not places:
        return pieces
    starts = document.text.starts
    bounds = {bisect_left(starts, place) for place in places}
    bounds |= {end for piece in pieces for end in piece}
    return list(pairwise(sorted(bounds)))


def _is_english(text: str, language: str) -> bool:
    """Tell whether numbers are to be read in English: no Chinese, and real words."""
    if language.lower().startswith("zh"):
        return False
    if _HAN.search(text):
        return False
    if language.lower().startswith("en"):
        return True
    return len(_LATIN_WORD.findall(text)) >= 2


def _weights(text: str, units: list[erhua.Unit]) -> list[int]:
    """Return the syllables of each character, English about one for three letters."""
    weights = [0] * len(text)
    for unit in units:
        weights[unit.start] = 1
    for match in speech.ENGLISH.finditer(text):
        size = match.end() - match.start()
        weights[match.start()] = size if match.group().isupper() and size <= 4 else -(-size // 3)
    return weights


def _cuts(mapped: Mapped, pauses: list[Pause]) -> dict[int, int | None]:
    """Return the places in the sentence where markup wants a pause, with the longest asked for."""
    cuts: dict[int, int | None] = {}
    if not pauses or not mapped.text:
        return cuts
    for pause in pauses:
        if not mapped.starts[0] <= pause.position:
            continue
        at = next((i for i, s in enumerate(mapped.starts) if s >= pause.position), len(mapped.text))
        if at == len(mapped.text) and pause.position > mapped.ends[-1] + 256:
            continue
        known = cuts.get(at)
        cuts[at] = pause.ms if known is None else max(known, pause.ms or 0)
    return cuts


def _with_silences(
    parts: list[Analysis], document: Document, text: str, offset: int
) -> Iterator[Analysis]:
    """Put marks and breaks in their places: all of a text with markup is there at once."""
    spoken = [segment for part in parts for segment in part.segments]
    yield Analysis(
        text,
        "".join(part.normalized for part in parts),
        tuple(silences.place(spoken, document, offset + len(text))),
        tuple(skip for part in parts for skip in part.skipped),
    )
