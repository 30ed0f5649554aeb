"""The texts a voice is taught with, and those it never hears."""

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from utterd.engine.training import frames

LISTS = Path(__file__).parent / "lists"
OWN = ("car", "home", "talk", "caption", "phonetic", "english", "mixed")
_OWN_LICENCE = "Apache-2.0"
_CLAUSE = re.compile(r"[，。！？；：、,.!?;:]+")
_SENTENCE = re.compile(r"[^。！？!?]+[。！？!?]?")
_QUOTED = re.compile(r'"(.+)"')
_PLAIN = re.compile(r"[\u4e00-\u9fffA-Za-z0-9，。！？；：、,.!?;:' %-]+")
"""Texts with brackets, quotation marks or formulas are left out: nobody says those."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One candidate text and where it comes from."""

    text: str
    source: str
    licence: str


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A sentence kept for evaluation; `kind` is `zh`, `en` or `mixed`."""

    kind: str
    text: str


def held_out() -> list[HeldOut]:
    """Return the fixed list of sentences that are never trained on."""
    rows = (LISTS / "heldout.tsv").read_text("utf-8").splitlines()
    return [HeldOut(*row.split("\t")) for row in rows]


def candidates(data: Path | None, seed: int) -> list[Sentence]:
    """Return every sentence that may be trained on, each text once, in a fixed order.

    Args:
        data: folder with `text/` and `zh/` as in the project's data; None for own texts only.
        seed: chooses the fillings of the sentence frames.
    """
    forbidden = {clause for sentence in held_out() for clause in clauses(sentence.text)}
    seen: set[str] = set()
    kept = []
    for sentence in _all(data, seed):
        if sentence.text in seen or forbidden.intersection(clauses(sentence.text)):
            continue
        seen.add(sentence.text)
        kept.append(sentence)
    return kept


def clauses(text: str) -> set[str]:
    """Return what must not be shared with held-out text: the whole, and its longer clauses."""
    parts = [part.strip() for part in _CLAUSE.split(text) if len(part.strip()) >= 5]
    return {"".join(_CLAUSE.split(text)), *parts}


def _all(data: Path | None, seed: int) -> Iterator[Sentence]:
    for name in OWN:
        for line in (LISTS / f"{name}.txt").read_text("utf-8").splitlines():
            yield Sentence(line, name, _OWN_LICENCE)
    for text in frames.fill(random.Random(seed)):  # noqa: S311 - choice of texts, not a secret
        yield Sentence(text, "frames", _OWN_LICENCE)
    if data is not None:
        turns = (data / "text/crosswoz.tsv").read_text("utf-8").splitlines()
        yield from _split((t.split("\t", 1)[1] for t in turns), "crosswoz", "Apache-2.0")
        wiki = (data / "zh/cpp-dev.sent").read_text("utf-8").splitlines()
        yield from _split((w.replace("▁", "") for w in wiki), "g2pm", "Apache-2.0")
        intents = (data / "text/ohf-intents-zh.txt").read_text("utf-8").splitlines()
        yield from _split((_unquoted(i) for i in intents), "intents", "CC-BY-4.0")


def _split(texts: Iterable[str], source: str, licence: str) -> Iterator[Sentence]:
    for text in texts:
        for part in _SENTENCE.findall(text):
            clean = part.strip(" ，、,;；：:")
            if clean and _PLAIN.fullmatch(clean):
                yield Sentence(clean, source, licence)


def _unquoted(line: str) -> str:
    quoted = _QUOTED.search(line)
    return quoted[1] if quoted else line
