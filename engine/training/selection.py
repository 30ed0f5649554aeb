"""An order of the training items of which every prefix is balanced.

Kinds of text take turns by fixed shares; inside a kind, the next item is the one with the most
rare units for its length (units: pairs of neighbouring phonemes, tone marks included), counted
over everything chosen so far. The gain of an item only falls as others are chosen, so a heap with
stale gains finds the best one without looking at all of them.
"""

import heapq
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence

SHARES = {
    "car": 2, "home": 2, "talk": 3, "caption": 2, "phonetic": 3, "english": 5, "mixed": 4,
    "frames": 6, "crosswoz": 4, "g2pm": 6, "intents": 1,
}  # fmt: skip
"""How often each source is drawn while it lasts."""
_LENGTH_POWER = 0.3
"""Below 1 favours long items: the teacher puts more than a second of silence around each, which is
paid for as speech is. (0.8 rendered 45 % silence.)"""


def units(phonemes: str) -> list[str]:
    """Return the pairs of neighbouring phonemes, ends marked, of a phoneme string."""
    marked = f"^{phonemes}$"
    return [marked[i : i + 2] for i in range(len(marked) - 1)]


def order(phonemes: Sequence[str], sources: Sequence[str], seed: int) -> list[int]:
    """Return a permutation of the items' indices.

    Args:
        phonemes: each item's phoneme string.
        sources: each item's source, a key of `SHARES`.
        seed: breaks ties.
    """
    rng = random.Random(seed)  # noqa: S311 - an order of texts, not a secret
    own = [units(p) for p in phonemes]
    heaps: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for index, source in enumerate(sources):
        heaps[source].append((-math.inf, rng.random(), index))
    for heap in heaps.values():
        heapq.heapify(heap)
    counts: Counter[str] = Counter()
    credit = dict.fromkeys(sorted(heaps), 0.0)
    chosen: list[int] = []
    while len(chosen) < len(phonemes):
        source = _whose_turn(credit, heaps)
        index = _best(heaps[source], own, counts)
        counts.update(own[index])
        chosen.append(index)
    return chosen


def _whose_turn(credit: dict[str, float], heaps: dict[str, list[tuple[float, float, int]]]) -> str:
    waiting = [source for source in credit if heaps[source]]
    total = sum(SHARES[source] for source in waiting)
    for source in waiting:
        credit[source] += SHARES[source] / total
    turn = max(waiting, key=lambda source: credit[source])
    credit[turn] -= 1
    return turn


def _best(
    heap: list[tuple[float, float, int]], own: Sequence[list[str]], counts: Counter[str]
) -> int:
    while True:
        _, tie, index = heapq.heappop(heap)
        gain = -sum(1 / (1 + counts[u]) for u in set(own[index])) / len(own[index]) ** _LENGTH_POWER
        if not heap or (gain, tie) <= heap[0][:2]:
            return index
        heapq.heappush(heap, (gain, tie, index))
