"""What was understood, counted against what was said."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.reader import Reader
from utterd.engine.training import plan


class Heard(msgspec.Struct, frozen=True):
    """One sentence from one speaker, as understood."""

    kind: str
    text: str
    speaker: str
    """`teacher`, `own` (the student by itself) or `copied` (with the teacher's prosody)."""
    heard: str
    units: int
    """Syllables of Chinese, phones of English, phonemes and tones of mixed sentences."""
    wrong: int
    wrong_without_tone: int


def syllables(reader: Reader, text: str) -> list[str]:
    """Return the Mandarin syllables of a text with their tones, `ni3`."""
    return [s.pinyin for segment in reader.analyse(text).segments for s in segment.syllables]


def phonemes(reader: Reader, text: str) -> list[str]:
    """Return all phonemes and tones of a text, without what only makes pauses."""
    said = plan.phonemes(reader.analyse(text).segments)
    return [p for p in said if p.isalpha() or p in "→↗↓↘"]


def errors(heard: Sequence[str], wanted: Sequence[str]) -> int:
    """Return the least number of changes, additions and omissions between the two."""
    row = list(range(len(wanted) + 1))
    for i, one in enumerate(heard, 1):
        last, row = row, [i]
        for j, other in enumerate(wanted, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (one != other)))
    return row[-1]


def rates(found: Iterable[Heard]) -> dict[str, dict[str, float]]:
    """Return errors per unit, in percent, by kind of sentence and speaker."""
    sums: dict[tuple[str, str], NDArray[np.int64]] = {}
    for one in found:
        counts = np.array([one.units, one.wrong, one.wrong_without_tone])
        key = one.kind, one.speaker
        sums[key] = sums.get(key, np.zeros(3, np.int64)) + counts
    out: dict[str, dict[str, float]] = {}
    for (kind, speaker), (units, wrong, toneless) in sums.items():
        of_kind = out.setdefault(kind, {"units": float(units)})
        of_kind[speaker] = round(100 * float(wrong) / float(units), 2)
        if kind == "zh":
            of_kind[f"{speaker}_without_tone"] = round(100 * float(toneless) / float(units), 2)
    return out
