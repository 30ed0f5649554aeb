"""Clauses for a voice: the first short, the others as long as a breath, cut where one pauses."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from utterd.engine.frontend.boundaries import ends
from utterd.engine.frontend.words import Token

FIRST = 10
"""Syllables the first clause of a text should not exceed where it has a natural break."""
BREATH = 25
"""Syllables no clause exceeds unless it has nowhere to cut."""
COMFORT = 18
"""Clauses are joined up to this many syllables."""

PAUSES_MS = {
    "。": 400,
    ".": 400,
    "！": 400,
    "!": 400,
    "？": 450,
    "?": 450,
    "；": 300,
    ";": 300,
    "…": 450,
    "\n": 500,
    "，": 160,
    ",": 160,
    "：": 220,
    ":": 220,
    "、": 100,
    "—": 200,
}
_OPEN = "“「『（(【《〈[‘"
_CLOSE = "”」』）)】》〉]’"
# A word of these begins a phrase, one of those ends it: places where a long clause may be cut.
_BEGINS = frozenset(["c", "p", "d", "r"])
_ENDS = frozenset(["uj", "ul", "uz", "ud", "y", "f"])
_WESTERN_BEGINS = frozenset(
    (
        "and",
        "or",
        "but",
        "that",
        "which",
        "who",
        "when",
        "where",
        "while",
        "because",
        "if",
        "in",
        "on",
        "at",
        "to",
        "with",
        "for",
        "from",
        "by",
        "after",
        "before",
    )
)
_NEVER_AFTER = frozenset(
    [
        "把",
        "被",
        "从",
        "在",
        "对",
        "向",
        "给",
        "比",
        "跟",
        "和",
        "与",
        "或",
        "及",
        "的",
        "不",
        "很",
        "最",
        "更",
        "太",
        "第",
        "一",
        "每",
        "这",
        "那",
    ]
)


@dataclass(frozen=True, slots=True)
class Clause:
    """Characters `start` to `end` of a sentence and the silence behind them."""

    start: int
    end: int
    pause_ms: int


def split(
    text: str,
    weights: Sequence[int],
    tokens: Sequence[Token],
    cuts: dict[int, int | None],
    *,
    first: bool,
) -> list[Clause]:
    """Split a sentence.

    `weights` are the syllables of each character, `cuts` the places where markup wants a pause,
    with its length in ms (None: as the text has it). `first`: nothing was said before.
    """
    total = [0]
    for weight in weights:
        total.append(total[-1] + weight)
    pieces = _natural(text, cuts)
    joined = _join(pieces, total, cuts, first=first)
    clauses: list[Clause] = []
    for start, end in joined:
        size = total[end] - total[start]
        if size > BREATH:
            places = _places(text, start, end, tokens)
            bounds = [start, *_balanced(places, start, end, total), end]
        else:
            bounds = [start, end]
        for left, right in pairwise(bounds):
            pause = _pause(text, right, cuts) if right == end else _soft_pause(text, right)
            clauses.append(Clause(left, right, pause))
    return clauses


def _natural(text: str, cuts: dict[int, int | None]) -> list[tuple[int, int]]:
    """Cut behind every mark and where markup asks, not inside brackets."""
    depth = 0
    inside = set()
    for i, c in enumerate(text):
        if c in _CLOSE:
            depth = max(0, depth - 1)
        if depth:
            inside.add(i + 1)
        if c in _OPEN and c not in "“‘":
            depth += 1
    stops = {end for end, hard in ends(text) if end not in inside or hard}
    stops |= {i for i in cuts if 0 < i < len(text)}
    bounds = sorted({0, len(text)} | {s for s in stops if s <= len(text)})
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def _join(
    pieces: list[tuple[int, int]], total: Sequence[int], cuts: dict[int, int | None], *, first: bool
) -> list[tuple[int, int]]:
    """Join short neighbours; the first clause of all stays short."""
    out: list[tuple[int, int]] = []
    for start, end in pieces:
        size = total[end] - total[start]
        if out and start not in cuts:
            before = out[-1]
            has = total[before[1]] - total[before[0]]
            opening = first and len(out) == 1
            # The less is said first, the sooner it sounds; two syllables are enough to begin.
            limit = FIRST if opening else COMFORT
            fits = has + size <= limit and not (opening and has >= 3)
            if size == 0 or has == 0 or fits:
                out[-1] = (before[0], end)
                continue
        out.append((start, end))
    return out


def _places(text: str, start: int, end: int, tokens: Sequence[Token]) -> list[tuple[int, float]]:
    """Return where a long clause may be cut, and how badly: between words, outside brackets."""
    found = []
    depth = 0
    at = start
    western = text[start:end].isascii()
    for n, token in enumerate(tokens[:-1]):
        if token.end <= start or token.end >= end:
            continue
        for c in text[at : token.end]:
            depth += (c in _OPEN) - (c in _CLOSE)
        at = token.end
        following = tokens[n + 1]
        left, right = text[token.end - 1], text[token.end]
        if western and depth <= 0 and left == " " and _latin(right):
            word = text[token.end : end].split(" ", 1)[0].lower()
            found.append((token.end, 0.3 if word in _WESTERN_BEGINS else 1.2))
            continue
        if (
            depth > 0
            or (_latin(left) and (_latin(right) or right == " "))
            or (left == " " and _latin(right))
        ):
            continue
        if _together(text, token, following):
            continue
        cost = 1.0
        if left in "、，,—":
            cost = 0.0
        elif token.tag in _ENDS:
            cost = 0.5
        elif text[token.end] == "是":
            cost = 0.8
        elif following.tag in _BEGINS and text[token.start : token.end] not in _NEVER_AFTER:
            cost = 0.4
        elif token.tag in ("n", "ns", "nt", "nz", "t") and following.tag.startswith("v"):
            cost = 0.3
        if (
            text[token.start : token.end] in _NEVER_AFTER
            or following.tag in _ENDS
            or token.tag in ("p", "m", "q")
        ):
            cost += 1.0
        found.append((token.end, cost))
    return found


def _latin(c: str) -> bool:
    return c.isascii() and c.isalnum()


_NUMERAL = frozenset("零一二两三四五六七八九十百千万亿点幺分之")


def _together(text: str, token: Token, following: Token) -> bool:
    """Numbers and names that the word splitter cut stay whole."""
    if text[token.end - 1] in _NUMERAL and text[token.end] in _NUMERAL:
        return True
    if token.tag == "m" and following.tag in ("m", "q"):
        return True
    if text[token.end - 1] in "到至比" and text[token.end] in _NUMERAL:
        return True
    if text[token.end] in "到至比" and text[token.end + 1 : token.end + 2] in _NUMERAL:
        return True
    named = ("nr", "ns", "nt", "nz", "x")
    return token.tag.startswith(named) and following.tag.startswith((*named[:-1], "n", "ng"))


def _balanced(
    places: list[tuple[int, float]], start: int, end: int, total: Sequence[int]
) -> list[int]:
    """Choose cuts so that the parts are of about one length and none is over a breath."""
    size = total[end] - total[start]
    parts = -(-size // BREATH)
    ideal = size / parts
    if parts == 2:
        middle = total[start] + ideal
        fair = [
            (((total[at] - middle) / ideal) ** 2 * 6 + cost, at)
            for at, cost in places
            if max(total[at] - total[start], total[end] - total[at]) <= BREATH
        ]
        if fair:
            return [min(fair)[1]]
    bounds = [start, *(p for p, _ in places), end]
    costs = [0.0, *(c for _, c in places), 0.0]
    best = [0.0] + [float("inf")] * (len(bounds) - 1)
    back = [0] * len(bounds)
    for j in range(1, len(bounds)):
        for i in range(j - 1, -1, -1):
            part = total[bounds[j]] - total[bounds[i]]
            over = max(0, part - BREATH)
            cost = best[i] + ((part - ideal) / ideal) ** 2 * 3 + over * 5 + costs[j]
            if cost < best[j]:
                best[j], back[j] = cost, i
            if part > 2 * BREATH:
                break
    chosen = []
    j = back[-1]
    while j:
        chosen.append(bounds[j])
        j = back[j]
    return chosen[::-1]


def _pause(text: str, end: int, cuts: dict[int, int | None]) -> int:
    asked = cuts.get(end)
    if asked is not None:
        return asked
    i = end
    pause = 0
    while i > 0 and (
        text[i - 1].isspace() or text[i - 1] in PAUSES_MS or text[i - 1] in _CLOSE + "\"'"
    ):
        i -= 1
        pause = max(pause, PAUSES_MS.get(text[i], 0))
    return pause


def _soft_pause(text: str, end: int) -> int:
    return PAUSES_MS.get(text[end - 1], 0)
