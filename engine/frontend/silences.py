"""Breaks and marks that stand between words: first, last, alone, or one behind the other.

A segment has one pause, behind it, and its marks stand at its phonemes. What does not fit becomes
a segment without words: its marks stand at its beginning, and its pause is all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from utterd.engine.frontend.contract import Mark, Segment
from utterd.engine.frontend.markup_model import Document, MarkAt, Pause


@dataclass(slots=True)
class _Group:
    """Marks, and the break behind them."""

    start: int
    marks: list[str] = field(default_factory=list)
    ms: int | None = None
    """Of the longest break; None where there is none."""


def place(segments: Sequence[Segment], document: Document, end: int) -> list[Segment]:
    """Give each mark and each break of a document its place.

    Args:
        segments: all that is spoken, each with the pause that follows it.
        document: its marks and breaks, by position in the original.
        end: of the original.

    Returns:
        The segments, with their marks, and those without words between them.
    """
    items: list[MarkAt | Pause] = [*document.marks, *(p for p in document.pauses if p.asked)]
    items.sort(key=lambda item: item.position)
    placed: list[Segment] = []
    for segment in segments:
        before = _take(items, segment.start)
        inside = _take(items, segment.end)
        names = _between(placed, before, segment.start)
        marks = [Mark(name, 0) for name in names]
        marks += [
            Mark(item.name, _phoneme_at(segment, item.position))
            for item in inside
            if isinstance(item, MarkAt)
        ]
        placed.append(replace(segment, marks=tuple(marks)))
    names = _between(placed, items, end, at_end=True)
    if names and placed and placed[-1].words:
        last = placed[-1]
        marks = [Mark(name, len(last.phonemes)) for name in names]
        placed[-1] = replace(last, marks=(*last.marks, *marks))
    elif names:
        placed.append(_silent(names, end, end, 0))
    return placed


def _take(items: list[MarkAt | Pause], before: int) -> list[MarkAt | Pause]:
    taken = [item for item in items if item.position < before]
    del items[: len(taken)]
    return taken


def _phoneme_at(segment: Segment, position: int) -> int:
    starts = [phoneme.start for phoneme in segment.phonemes]
    return next((i for i, start in enumerate(starts) if start >= position), len(starts))


def _between(
    placed: list[Segment], items: Sequence[MarkAt | Pause], end: int, *, at_end: bool = False
) -> list[str]:
    """Place what stands between two spoken segments; gives the marks behind the last break."""
    groups = [_Group(items[0].position)] if items else []
    for item in items:
        if isinstance(item, Pause):
            groups[-1].ms = max(groups[-1].ms or 0, item.ms or 0)
            continue
        if groups[-1].ms is not None:
            groups.append(_Group(item.position))
        groups[-1].marks.append(item.name)
    left = groups.pop().marks if groups and groups[-1].ms is None else []
    if groups and placed and placed[-1].words:
        first = groups[0]
        before = placed[-1]
        marks = [Mark(name, len(before.phonemes)) for name in first.marks]
        # With more than one break between marks, the segment's own is the first alone.
        ms = max(before.pause_ms, first.ms or 0) if len(groups) == 1 else first.ms or 0
        before = replace(before, marks=(*before.marks, *marks), pause_ms=ms)
        if at_end and len(groups) == 1 and first.ms:
            # The pause behind what is last is left out, unless it was asked for.
            placed[-1] = replace(before, pause_ms=0)
            groups = [_Group(before.end, [], ms)]
        else:
            placed[-1] = before
            del groups[0]
    ends = [*(group.start for group in groups[1:]), end][: len(groups)]
    placed += [
        _silent(group.marks, group.start, stop, group.ms or 0)
        for group, stop in zip(groups, ends, strict=True)
        if group.marks or group.ms
    ]
    return left


def _silent(names: Sequence[str], start: int, end: int, ms: int) -> Segment:
    return Segment(
        text="",
        start=start,
        end=end,
        language="",
        syllables=(),
        phonemes=(),
        words=(),
        pause_ms=ms,
        marks=tuple(Mark(name, 0) for name in names),
    )
