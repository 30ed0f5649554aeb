"""An utterance: its states, their transitions, and what was heard of it."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from itertools import pairwise
from typing import NamedTuple

import msgspec

from utterd.daemon import events
from utterd.daemon.protocol import Speak
from utterd.engine import messages as engine
from utterd.engine.frontend.stream import Piece


class Priority(IntEnum):
    """The five of SSIP, first to last."""

    important = 0
    message = 1
    text = 2
    notification = 3
    progress = 4


class State(Enum):
    """Where an utterance is in its life."""

    WAITING = "waiting"
    DISPATCHED = "dispatched"
    """Given to a worker; nothing of it has sounded since."""
    SPEAKING = "speaking"
    ENDED = "ended"
    CANCELLED = "cancelled"
    FAILED = "failed"
    DROPPED = "dropped"


class Stimulus(Enum):
    """What can happen to it."""

    DISPATCH = "dispatch"
    SOUND = "sound"
    DISPLACE = "displace"
    FINISH = "finish"
    CANCEL = "cancel"
    FAIL = "fail"
    DROP = "drop"


TRANSITIONS: dict[tuple[State, Stimulus], State] = {
    (State.WAITING, Stimulus.DISPATCH): State.DISPATCHED,
    (State.WAITING, Stimulus.CANCEL): State.CANCELLED,
    (State.WAITING, Stimulus.FAIL): State.FAILED,
    (State.WAITING, Stimulus.DROP): State.DROPPED,
    # Displaced when its last sample was with the device already.
    (State.WAITING, Stimulus.FINISH): State.ENDED,
    (State.DISPATCHED, Stimulus.SOUND): State.SPEAKING,
    (State.DISPATCHED, Stimulus.DISPLACE): State.WAITING,
    (State.DISPATCHED, Stimulus.FINISH): State.ENDED,
    (State.DISPATCHED, Stimulus.CANCEL): State.CANCELLED,
    (State.DISPATCHED, Stimulus.FAIL): State.FAILED,
    (State.DISPATCHED, Stimulus.DROP): State.DROPPED,
    (State.SPEAKING, Stimulus.DISPLACE): State.WAITING,
    (State.SPEAKING, Stimulus.FINISH): State.ENDED,
    (State.SPEAKING, Stimulus.CANCEL): State.CANCELLED,
    (State.SPEAKING, Stimulus.FAIL): State.FAILED,
}
"""From a state, by a stimulus, to a state. What is not listed is a defect and raises."""

LIVING = frozenset({State.WAITING, State.DISPATCHED, State.SPEAKING})
ON_ITS_WAY = frozenset({State.DISPATCHED, State.SPEAKING})

STAGES = (
    "received",
    "admitted",
    "started_synthesis",
    "phonemes",
    "encoded",
    "first_chunk",
    "first_written",
    "first_sound",
    "last_sound",
)


class TransitionError(RuntimeError):
    """A stimulus that the state does not allow."""


class Cue(NamedTuple):
    """Something to tell when a sample sounds."""

    position: int
    event: events.Event
    start: int
    """Character at which its segment begins."""


@dataclass(slots=True, eq=False)
class Utterance:
    """One request to speak, from `accepted` to its terminal event."""

    command: Speak
    client: str
    id: str
    voice: str
    """Name of the voice package."""
    speaker: str
    order: int
    """Grows with every arrival."""
    state: State = State.WAITING
    stages: dict[str, int] = field(default_factory=dict)
    deadline_ns: int = 0
    """It must sound by then; 0: no hurry."""
    started: bool = False
    """`started` was sent (in this or an earlier generation)."""
    settling: bool = False
    """Displaced, and the player has not yet said how far it was heard."""
    sample_rate: int = 0

    text: str = ""
    """What has arrived of it."""
    closed: bool = False
    """Nothing more will arrive."""
    closed_ns: int = 0
    """When that came to be, of a text that arrived in pieces."""
    pieces: list[Piece] = field(default_factory=list)
    """Text that may be spoken."""

    generation: int = 0
    """Of the current start; 0 while it has none. What follows is of this generation."""
    resume_at: int = 0
    """Character offset from which this start speaks."""
    earlier_ms: float = 0.0
    """Played in earlier generations."""
    earlier_heard: int = 0
    """Characters heard in earlier generations."""
    fed: int = 0
    """Pieces that the worker has."""
    final_sent: bool = False
    segments: list[engine.Segment] = field(default_factory=list)
    cues: list[Cue] = field(default_factory=list)
    """Clauses, words and marks still to come, by sample position."""
    anchor: tuple[int, int] | None = None
    """A sample position and when it reaches the DAC; None while it can't be told."""
    stands_at: int = 0
    """Where its sound stopped, while there is no anchor."""

    retries: int = 0
    """Losses of its worker in a row that came no further than the one before."""
    lost_at: int = -1
    """Position up to which it was written when it last lost its worker."""
    speak_from: int = 0
    """Character offset from which the worker speaks; behind `resume_at` after a lost worker."""
    restart_position: int = 0
    """Sample position of `speak_from`."""
    written_to: int = 0
    """Samples before this position are in the ring already."""

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by."""
        return self.client, self.id

    @property
    def priority(self) -> Priority:
        """Its SSIP priority."""
        return Priority[self.command.priority]

    @property
    def may_expire(self) -> bool:
        """Whether its time to live still counts."""
        return (
            self.deadline_ns > 0
            and not self.started
            and self.state in (State.WAITING, State.DISPATCHED)
        )

    def apply(self, stimulus: Stimulus) -> None:
        """Move to the next state.

        Raises:
            TransitionError: the state does not allow it; nothing is changed.
        """
        following = TRANSITIONS.get((self.state, stimulus))
        if following is None:
            raise TransitionError(f"{self.client}/{self.id}: {stimulus} while {self.state}")
        self.state = following

    def begin(self, generation: int) -> None:
        """Start (again) from `resume_at` as a new generation."""
        self.apply(Stimulus.DISPATCH)
        self.generation = generation
        self.segments = []
        self.cues = []
        self.stand_still(0)
        self._rewind(self.resume_at, position=0)
        self.written_to = 0

    def go_on(self, written_to: int) -> None:
        """Let another worker take up the generation from the segment in which one was lost."""
        last = self.segments[-1] if self.segments else None
        self._rewind(last.start if last else self.resume_at, last.position if last else 0)
        self.written_to = written_to

    def _rewind(self, offset: int, position: int) -> None:
        self.speak_from = offset
        self.restart_position = position
        self.final_sent = False
        self.fed = 0
        for number, piece in enumerate(self.pieces):
            if piece.offset <= offset:
                self.fed = number

    def learn(self, segment: engine.Segment) -> None:
        """Take the worker's word on when a segment says what."""
        # Another worker, after a loss, tells again of the one in which it takes up. One without
        # samples stands where the next one begins.
        place = segment.position, segment.start
        self.segments = [s for s in self.segments if (s.position, s.start) < place]
        self.segments.append(segment)
        if self.command.marks or self.command.durable:
            self.cues = [cue for cue in self.cues if cue.start < segment.start]
            clause = events.Progress(start=segment.start, end=segment.end, dac_ns=0)
            cues = [Cue(segment.position, clause, segment.start)]
            cues += [
                Cue(
                    word.position,
                    events.Word(start=word.start, end=word.end, dac_ns=0),
                    segment.start,
                )
                for word in segment.words
            ]
            cues += [
                Cue(mark.position, events.Mark(name=mark.name, dac_ns=0), segment.start)
                for mark in segment.marks
            ]
            self.cues += sorted(cues, key=lambda cue: cue.position)

    def time_of(self, position: int) -> int:
        """When a sample reaches the DAC, in CLOCK_MONOTONIC ns; 0 if it can't be told yet."""
        if self.anchor is None or not self.sample_rate:
            return 0
        return self.anchor[1] + (position - self.anchor[0]) * 1_000_000_000 // self.sample_rate

    def stand_still(self, position: int) -> None:
        """Its sound stopped, and when it goes on can't be told until the next anchor."""
        self.anchor = None
        self.stands_at = position

    def position_at(self, now_ns: int) -> int:
        """The sample at the DAC now, as far as can be told."""
        if self.anchor is None or not self.sample_rate or not self.segments:
            return self.stands_at
        passed = (now_ns - self.anchor[1]) * self.sample_rate // 1_000_000_000
        return max(0, min(self.anchor[0] + passed, self.known_samples))

    @property
    def known_samples(self) -> int:
        """Samples of this generation that the worker has told of."""
        return self.segments[-1].position + self.segments[-1].samples if self.segments else 0

    def next_cue_ns(self) -> int:
        """When the next word or mark sounds; 0 if there is none or it can't be told yet."""
        return self.time_of(self.cues[0].position) if self.cues else 0

    def take_cue(self) -> tuple[events.Event, int]:
        """The next word or mark, with the time at which it sounds."""
        position, event, _ = self.cues.pop(0)
        dac_ns = self.time_of(position)
        return msgspec.structs.replace(event, dac_ns=dac_ns), dac_ns

    def take_cues(self, end_ns: int) -> Iterator[tuple[events.Event, int]]:
        """All that are left when its last sample sounds, at the latest then.

        A mark may stand behind it, and where there is no sound nobody tells when that is.
        """
        for position, event, _ in self.cues:
            dac_ns = min(self.time_of(position) or end_ns, end_ns)
            yield msgspec.structs.replace(event, dac_ns=dac_ns), dac_ns
        self.cues = []

    def segment_at(self, position: int) -> engine.Segment | None:
        """The segment that holds sample `position` of the current generation."""
        index = bisect_right(self.segments, position, key=lambda segment: segment.position) - 1
        return self.segments[index] if index >= 0 else None

    def heard_characters(self, position: int) -> int:
        """Characters up to the end of the last word that had begun by sample `position`."""
        segment = self.segment_at(position) if position > 0 else None
        if segment is None:
            return self.earlier_heard
        begun = [word for word in segment.words if word.position < position]
        return max(self.earlier_heard, begun[-1].end if begun else segment.start)

    def resumes_from(self, position: int) -> int:
        """Character from which to go on if it is cut at `position`: the clause it is in.

        A clause that was cut in the pause behind it was heard.
        """
        segment = self.segment_at(position) if position > 0 else None
        if segment is None:
            return self.resume_at
        # Behind the last segment that is known, the next one sounds and has not been told of yet.
        is_over = position >= segment.position + segment.samples - segment.pause
        return segment.end if is_over else segment.start

    def played_ms(self, samples: int) -> float:
        """Sound heard in all generations, if `samples` of the current one were."""
        current = samples / self.sample_rate * 1000 if self.sample_rate else 0.0
        return round(self.earlier_ms + current, 1)

    def describe(self) -> dict[str, object]:
        """As `status` shows it."""
        return {
            "client": self.client,
            "id": self.id,
            "state": self.state.value,
            "priority": self.command.priority,
            "voice": self.voice,
            "characters": len(self.text),
            "complete": self.closed,
        }

    def durations_ms(self) -> dict[str, float]:
        """Differences of neighbouring stages, and the sums that matter."""
        known = [(name, self.stages[name]) for name in STAGES if name in self.stages]
        spans = {
            f"{before}_to_{after}": (end - begin) / 1e6
            for (before, begin), (after, end) in pairwise(known)
        }
        for after in ("first_written", "first_sound"):
            if after in self.stages and "received" in self.stages:
                spans[f"received_to_{after}"] = (self.stages[after] - self.stages["received"]) / 1e6
        return spans
