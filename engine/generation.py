"""What the worker knows of one utterance: its state, its position, what is still to report."""

from dataclasses import dataclass, field
from enum import Enum

from utterd.engine import messages
from utterd.engine.frontend import contract as text
from utterd.engine.outlets import Outlet
from utterd.engine.voices.contract import Speech

_REPORT_BYTES = 96 * 1024
"""Of what was skipped, in one message: half of what a packet takes."""
_SKIPPED_BYTES = 64
"""Of one place, at most, besides its text."""


class State(Enum):
    """Of a generation."""

    OPEN = "open"
    """More of it may come."""
    FINISHED = "finished"
    ABANDONED = "abandoned"
    FAILED = "failed"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.OPEN: frozenset({State.FINISHED, State.ABANDONED, State.FAILED}),
    State.FINISHED: frozenset(),
    State.ABANDONED: frozenset(),
    State.FAILED: frozenset(),
}


@dataclass(slots=True)
class Generation:
    """What the worker knows of one utterance between its pieces."""

    number: int
    outlet: Outlet
    position: int
    """Of the next sample."""
    written: int
    """Samples before it are in the ring already."""
    state: State = State.OPEN
    segments: int = 0
    sounded: bool = False
    """`FirstAudio` was sent."""
    network_ns: int = 0
    other_ns: int = 0
    waited_ns: int = 0
    """For room in its outlet."""
    skipped: list[text.Skipped] = field(default_factory=list)
    """Not yet reported."""

    def take_skipped(self) -> list[messages.Skipped]:
        """What to report with the next segment; each piece of text is reported once.

        Neighbours are one. What would not fit into a message is reported as one, without its text.
        """
        taken, self.skipped = self.skipped, []
        reported: list[messages.Skipped] = []
        size = 0
        for number, one in enumerate(taken):
            before = reported[-1] if reported else None
            joins = before and before.end == one.start and before.reason == one.reason
            size += 4 * len(one.text) + (0 if joins else _SKIPPED_BYTES)
            if size > _REPORT_BYTES:
                rest = taken[number:]
                start, end = min(s.start for s in rest), max(s.end for s in rest)
                reported.append(messages.Skipped(start, end, "", f"{len(rest)} more places"))
                break
            if before and joins:
                text = before.text + one.text
                reported[-1] = messages.Skipped(before.start, one.end, text, one.reason)
            else:
                reported.append(messages.Skipped(one.start, one.end, one.text, one.reason))
        return reported

    def end(self, state: State) -> None:
        """Go over to a final state.

        Raises:
            ValueError: it is in one already.
        """
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"generation {self.number} can't go from {self.state} to {state}")
        self.state = state


@dataclass(slots=True)
class Stages:
    """When the first chunk of a piece passed where, in CLOCK_MONOTONIC ns."""

    received: int
    started_synthesis: int
    phonemes: int = 0
    encoded: int = 0
    first_chunk: int = 0


def describe(
    generation: Generation,
    segment: text.Segment,
    speech: Speech,
    *,
    begin: int,
    pause: int,
    last: bool,
) -> messages.Segment:
    """The message about a segment that begins at a position."""
    timing = speech.timing
    generation.skipped += speech.skipped
    generation.segments += 1
    return messages.Segment(
        generation=generation.number,
        index=generation.segments - 1,
        start=segment.start,
        end=segment.end,
        position=begin,
        samples=timing.samples + pause,
        words=[
            messages.Word(word.start, word.end, begin + at)
            for word, at in zip(segment.words, timing.words, strict=True)
        ],
        marks=[
            messages.Mark(mark.name, begin + at)
            for mark, at in zip(segment.marks, timing.marks, strict=True)
        ],
        skipped=generation.take_skipped(),
        last=last,
        pause=pause,
    )


def silent(
    generation: Generation, segment: text.Segment, samples: int, *, last: bool
) -> messages.Segment:
    """The message about a segment that is a break, or marks alone."""
    generation.segments += 1
    return messages.Segment(
        generation=generation.number,
        index=generation.segments - 1,
        start=segment.start,
        end=segment.end,
        position=generation.position,
        samples=samples,
        words=[],
        marks=[messages.Mark(mark.name, generation.position) for mark in segment.marks],
        skipped=generation.take_skipped(),
        last=last,
        pause=samples,
    )


def wordless(generation: Generation, start: int, end: int, samples: int) -> messages.Segment:
    """The message about a last segment that is a sound, or nothing."""
    return messages.Segment(
        generation=generation.number,
        index=generation.segments,
        start=start,
        end=end,
        position=generation.position,
        samples=samples,
        words=[],
        marks=[],
        skipped=generation.take_skipped(),
        last=True,
    )
