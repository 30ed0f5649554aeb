"""Cut generations that settle: silent only when the player has said how far each was heard."""

from dataclasses import dataclass, field
from typing import Literal

from utterd.daemon import events
from utterd.daemon.instructions import Instruction, Silent
from utterd.daemon.utterance import Utterance

SETTLE_NS = 250_000_000
"""How long the player's word is waited for: it may have no device, or no life."""


@dataclass(slots=True)
class Cut:
    """A cut generation, and what becomes of its utterance when it is silent."""

    utterance: Utterance
    then: Literal["cancelled", "displaced", "dropped", "failed"]
    reason: str = ""
    failure: events.Failed | None = None
    spoke: bool = False
    """It was told that this generation sounds."""
    cut_ns: int = 0
    """When it was cut."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A command that is answered when all it cut is silent."""

    number: int
    pending: set[int]
    cancelled: int
    silent_ns: int = 0


@dataclass(slots=True)
class Cuts:
    """All that settle, and who waits for it.

    Args:
        out: gets a `Silent` instruction for every ticket.
    """

    out: list[Instruction]
    settling: dict[int, Cut] = field(default_factory=dict)
    _tickets: list[Ticket] = field(default_factory=list)
    _number: int = 0

    def begin(self, cut: Cut, now_ns: int) -> None:
        """A generation was cut."""
        cut.cut_ns = now_ns
        self.settling[cut.utterance.generation] = cut

    def replace(self, cut: Cut) -> None:
        """Something else becomes of an utterance that settles already."""
        generation = cut.utterance.generation
        cut.cut_ns = self.settling[generation].cut_ns
        self.settling[generation] = cut

    def take(self, generation: int) -> Cut | None:
        """A generation is silent; None if it was not waited for (any more)."""
        return self.settling.pop(generation, None)

    def ticket(self, generations: set[int], cancelled: int) -> Ticket:
        """Ask for an answer when these generations, and all that settle already, are silent."""
        self._number += 1
        ticket = Ticket(self._number, generations | self.settling.keys(), cancelled)
        self._tickets.append(ticket)
        return ticket

    def silent(self, generation: int, silent_ns: int) -> None:
        """Tell the tickets that a generation is silent."""
        for ticket in list(self._tickets):
            if generation in ticket.pending:
                ticket.pending.discard(generation)
                ticket.silent_ns = max(ticket.silent_ns, silent_ns)
                self.answer(ticket)

    def answer(self, ticket: Ticket) -> None:
        """Answer a ticket, if all it waits for is silent."""
        if not ticket.pending and ticket in self._tickets:
            self._tickets.remove(ticket)
            self.out.append(Silent(ticket.number, ticket.silent_ns, ticket.cancelled))

    def deadlines_ns(self) -> list[int]:
        """When each is given up waiting for."""
        return [cut.cut_ns + SETTLE_NS for cut in self.settling.values()]

    def overdue(self, now_ns: int) -> list[int]:
        """Generations of which the player has said nothing in time."""
        return [g for g, cut in self.settling.items() if cut.cut_ns + SETTLE_NS <= now_ns]
