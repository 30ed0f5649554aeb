"""The line: every utterance that lives, on its way to the speaker or waiting behind that."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from utterd.daemon import events
from utterd.daemon.arriving import Arriving, Pieces
from utterd.daemon.instructions import Emit, Instruction, Need
from utterd.daemon.protocol import ProtocolError
from utterd.daemon.records import Records
from utterd.daemon.utterance import LIVING, Priority, Utterance
from utterd.daemon.way import Way
from utterd.engine.frontend.stream import Piece


@dataclass(slots=True)
class Line:
    """Who is in it, who goes next, and what is remembered of those that have left.

    Args:
        out: gets the instructions.
        arriving: the texts that come in pieces.
        revoke: sees to it that no further sample of a generation sounds, and gives the generation
            that the device began last: a higher one that is revoked has not sounded.
    """

    out: list[Instruction]
    arriving: Arriving
    revoke: Callable[[int], int]
    way: Way = field(init=False)
    waiting: list[Utterance] = field(default_factory=list)
    """In the order in which they will speak."""
    known: dict[tuple[str, str], Utterance] = field(default_factory=dict)
    """Utterances without a terminal event yet."""
    records: Records = field(default_factory=Records)
    paused: bool = False

    def __post_init__(self) -> None:
        self.way = Way(self.out)

    # ---- looking ----

    @property
    def living(self) -> list[Utterance]:
        """All that live: on their way first, then waiting, in order."""
        return [*self.way.on_way, *self.waiting]

    def find(self, client: str, id_: str) -> Utterance:
        """An utterance of a client that lives.

        Raises:
            ProtocolError: `unknown_id`.
        """
        utterance = self.known.get((client, id_))
        if utterance is None or utterance.state not in LIVING:
            raise ProtocolError("unknown_id", f"no utterance {id_!r} of this client lives", "id")
        return utterance

    def needs(self, voice: str) -> bool:
        """Whether a voice's worker has speech to make, or will have next."""
        return self.way.needs(voice) or any(
            u.voice == voice and not self._is_held(u) for u in self.waiting
        )

    def sounds_next(self, utterance: Utterance) -> bool:
        """Whether it sounds, or will before all others."""
        return self.way.on_way[:1] == [utterance]

    def snapshot(self) -> dict[str, Any]:
        """The queue as `status` shows it."""
        return {
            "paused": self.paused,
            "speaking": [u.describe() for u in self.way.on_way],
            "waiting": [u.describe() for u in self.waiting],
            "ended": dict(self.records.counts),
        }

    # ---- coming ----

    def enter(self, utterance: Utterance) -> None:
        """A new utterance takes its place, and is told how many are ahead of it."""
        self.known[utterance.key] = utterance
        self.enqueue(utterance)
        ahead = self.waiting.index(utterance) + len(self.way.on_way)
        self.emit(utterance, events.Accepted(ahead=ahead))

    def enqueue(self, utterance: Utterance) -> None:
        """Let it wait where its priority and its age put it."""
        self.waiting.append(utterance)
        self.waiting.sort(key=lambda u: (u.priority, u.order))

    def complete(self, utterance: Utterance, now_ns: int) -> None:
        """Nothing more of its text will arrive."""
        pieces = self.arriving.finish(utterance.key)
        utterance.closed, utterance.closed_ns = True, now_ns
        if not utterance.pieces and not pieces:
            pieces = [Piece("", 0)]
        self.extend(utterance, pieces)

    def extend(self, utterance: Utterance, pieces: Pieces) -> None:
        """More of its text may be spoken."""
        utterance.pieces += pieces
        self.way.feed(utterance)
        self.dispatch()

    def dispatch(self) -> None:
        """Send waiting utterances on their way, as far as there is room."""
        while (utterance := self._next()) is not None:
            if utterance.voice not in self.way.rates:
                self.out.append(Need(utterance.voice))
                return
            if not self.way.takes(utterance):
                return
            self.waiting.remove(utterance)
            self.way.begin(utterance)

    def _next(self) -> Utterance | None:
        for utterance in self.waiting:
            # One that settles comes back in a moment, and nothing may pass it.
            if self._is_held(utterance) or utterance.settling:
                return None
            if utterance.pieces:
                return utterance
        return None

    def _is_held(self, utterance: Utterance) -> bool:
        return self.paused and utterance.priority is not Priority.important

    # ---- going ----

    def emit(self, utterance: Utterance, event: events.Event, at_ns: int = 0) -> None:
        """Tell an event of an utterance, not before `at_ns`."""
        self.out.append(Emit(events.of(event, utterance.client, utterance.id), at_ns))

    def leave(self, utterance: Utterance, event: events.Terminal, at_ns: int = 0) -> None:
        """It is over: tell its terminal event, not before `at_ns`."""
        del self.known[utterance.key]
        self.arriving.forget(utterance.key)
        self.emit(utterance, event, at_ns)
        self.records.ended(utterance.key, event)
