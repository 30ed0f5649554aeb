"""The plan of a corpus: what is spoken, in which order, fixed once and kept beside the shards."""

import hashlib
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from utterd.engine.frontend.contract import Segment
from utterd.engine.frontend.reader import Reader
from utterd.engine.training import selection, teacher
from utterd.engine.training.files import write_whole
from utterd.engine.training.texts import Sentence

_SYLLABLES = range(2, 41)
_MOST_PHONEMES = 200
_JOINED = 0.4
"""Share of sentences spoken whole; the others clause by clause, as the worker asks for them."""


class Item(msgspec.Struct, frozen=True):
    """One thing to speak."""

    text: str
    phonemes: str
    source: str
    licence: str


class Plan(msgspec.Struct, frozen=True):
    """All of a corpus, in the order of rendering. Every prefix is balanced."""

    seed: int
    speaker: str
    teacher: str
    """SHA-256 of the teacher's model."""
    vocabulary: dict[str, int]
    items: list[Item]
    speeds: tuple[float, float] = (1.0, 1.0)
    """Between which every item's speed is drawn. Other speeds than 1 are for `fit acoustic`."""
    silent: bool = False
    """Without sound, for `fit prosody`."""

    def speed(self, index: int) -> float:
        """Return an item's speed, always the same."""
        low, high = self.speeds
        draw = random.Random(f"{self.seed} {index}")  # noqa: S311 - not a secret
        return draw.uniform(low, high)

    def tokens(self, index: int) -> list[int]:
        """Return an item's phoneme ids, 0 at both ends."""
        return [0, *(self.vocabulary[p] for p in self.items[index].phonemes), 0]


def make(
    sentences: Iterable[Sentence],
    folder: Path,
    speaker: str,
    seed: int,
    *,
    speeds: tuple[float, float],
    silent: bool,
) -> Plan:
    """Read the sentences, cut them into items and put those in order."""
    vocabulary = teacher.vocabulary(folder)
    rng = random.Random(seed)  # noqa: S311 - a choice of texts, not a secret
    unique = {item.phonemes: item for item in _items(sentences, set(vocabulary), rng)}
    items = list(unique.values())
    chosen = selection.order([i.phonemes for i in items], [i.source for i in items], seed)
    ordered = [items[i] for i in chosen]
    return Plan(seed, speaker, teacher.checksum(folder), vocabulary, ordered, speeds, silent)


def save(path: Path, plan: Plan) -> None:
    """Write a plan as JSON."""
    write_whole(path, msgspec.json.encode(plan))


def load(path: Path) -> Plan:
    """Read a plan."""
    return msgspec.json.decode(path.read_bytes(), type=Plan)


def summary(plan: Plan) -> dict[str, object]:
    """Return what tells a corpus from others, for the recipe of a voice."""
    return {
        "plan": digest(plan),
        "seed": plan.seed,
        "speaker": plan.speaker,
        "speeds": plan.speeds,
        "silent": plan.silent,
        "teacher_sha256": plan.teacher,
    }


def digest(plan: Plan) -> str:
    """Return a short name for exactly this plan."""
    return hashlib.sha256(json.dumps(msgspec.to_builtins(plan)).encode()).hexdigest()[:16]


def _items(sentences: Iterable[Sentence], known: set[str], rng: random.Random) -> Iterator[Item]:
    reader = Reader()
    for sentence in sentences:
        segments = reader.analyse(sentence.text).segments
        groups = [segments] if rng.random() < _JOINED else [(s,) for s in segments]
        for group in groups:
            said = phonemes(group)
            fits = _length(group) in _SYLLABLES and len(said) <= _MOST_PHONEMES
            if fits and known.issuperset(said):
                text = "".join(segment.text for segment in group)
                yield Item(text, said, sentence.source, sentence.licence)


def phonemes(group: tuple[Segment, ...]) -> str:
    """Return the phonemes of segments said in one breath."""
    return " ".join("".join(p.symbol for p in segment.phonemes) for segment in group)


def _length(group: tuple[Segment, ...]) -> int:
    """Return the syllables of Chinese plus the words that are not Chinese."""
    total = 0
    for segment in group:
        chinese = {s.start for s in segment.syllables}
        total += len(segment.syllables)
        total += sum(1 for w in segment.words if w.start not in chinese)
    return total
