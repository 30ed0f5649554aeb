"""Ends utterances before their time, or cuts them to go on later: silence, and what follows it."""

from utterd.daemon import events
from utterd.daemon.cuts import Cut, Cuts
from utterd.daemon.line import Line
from utterd.daemon.utterance import ON_ITS_WAY, State, Stimulus, Utterance


class Cutting:
    """Cuts what is in the line; what becomes of each waits for the player's word.

    Args:
        line: everything that lives.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self.cuts = Cuts(line.out)

    def silence(self, chosen: list[Utterance], reason: str, now_ns: int) -> int:
        """Cancel these; gives the number of the ticket that is answered when all are silent."""
        cut = {u.generation for u in chosen if u.state in ON_ITS_WAY or u.settling}
        ticket = self.cuts.ticket(cut, len(chosen))
        for utterance in chosen:
            self.cancel(utterance, reason, now_ns)
        self._line.dispatch()
        self.cuts.answer(ticket)
        return ticket.number

    def hold(self, chosen: list[Utterance], now_ns: int) -> int:
        """Cut these for a pause; gives the number of a ticket as `silence` does."""
        ticket = self.cuts.ticket({u.generation for u in chosen}, 0)
        for utterance in reversed(chosen):
            self.displace(utterance, "paused", now_ns)
        self._line.dispatch()
        self.cuts.answer(ticket)
        return ticket.number

    def cancel(self, utterance: Utterance, reason: str, now_ns: int) -> None:
        """End it as cancelled."""
        self._cut_short(utterance, Stimulus.CANCEL, Cut(utterance, "cancelled", reason), now_ns)

    def drop(self, utterance: Utterance, reason: str, now_ns: int) -> None:
        """End it as never spoken."""
        self._cut_short(utterance, Stimulus.DROP, Cut(utterance, "dropped", reason), now_ns)

    def fail(self, utterance: Utterance, failure: events.Failed, now_ns: int) -> None:
        """End it as failed."""
        cut = Cut(utterance, "failed", failure=failure)
        self._cut_short(utterance, Stimulus.FAIL, cut, now_ns)

    def displace(self, utterance: Utterance, reason: str, now_ns: int) -> None:
        """Cut an utterance on its way that will go on later, if it may."""
        is_cut = reason == "displaced" and self._line.sounds_next(utterance)
        if is_cut and utterance.command.on_interrupt == "drop":
            self.cancel(utterance, reason, now_ns)
            return
        spoke = utterance.state is State.SPEAKING
        utterance.apply(Stimulus.DISPLACE)
        utterance.settling = True
        self._line.enqueue(utterance)
        self._cut(Cut(utterance, "displaced", reason, spoke=spoke), now_ns)

    def settle(self, generation: int, samples: int, silent_ns: int) -> None:
        """A cut generation is silent, and this much of it was heard."""
        cut = self.cuts.take(generation)
        if cut is None:
            return
        utterance = cut.utterance
        heard = utterance.heard_characters(samples)
        if cut.then == "displaced":
            self._comes_back(cut, samples, heard)
        else:
            self._conclude(cut, heard, utterance.played_ms(samples), silent_ns)
        self.cuts.silent(generation, silent_ns)

    def settle_by_clock(self, generation: int) -> None:
        """A cut generation of which the player has said nothing: compute how far it was heard."""
        cut = self.cuts.settling[generation]
        self.settle(generation, cut.utterance.position_at(cut.cut_ns), 0)

    def _cut_short(self, utterance: Utterance, stimulus: Stimulus, cut: Cut, now_ns: int) -> None:
        """End a living utterance before its time, wherever it is."""
        on_way = utterance.state in ON_ITS_WAY
        utterance.apply(stimulus)
        if on_way:
            self._cut(cut, now_ns)
            return
        self._line.waiting.remove(utterance)
        if utterance.settling:  # displaced just now: the player's word is waited for all the same
            self.cuts.replace(cut)
        else:
            self._conclude(cut, utterance.earlier_heard, utterance.earlier_ms, 0)

    def _cut(self, cut: Cut, now_ns: int) -> None:
        """Silence a generation; what becomes of its utterance waits for the player's word."""
        generation = cut.utterance.generation
        has_begun = self._line.revoke(generation) >= generation
        self._line.way.leave(cut.utterance)
        self.cuts.begin(cut, now_ns)
        if not has_begun:  # and now it never will
            self.settle(generation, 0, 0)

    def _comes_back(self, cut: Cut, samples: int, heard: int) -> None:
        """A displaced utterance may be dispatched again, from the clause it was in."""
        utterance = cut.utterance
        utterance.settling = False
        restart = utterance.command.on_interrupt == "restart" and cut.reason == "displaced"
        utterance.resume_at = 0 if restart else utterance.resumes_from(samples)
        utterance.earlier_ms = utterance.played_ms(samples)
        utterance.earlier_heard = heard
        if cut.spoke:
            paused = events.Paused(reason=cut.reason, heard_characters=heard)
            self._line.emit(utterance, paused)

    def _conclude(self, cut: Cut, heard: int, played_ms: float, silent_ns: int) -> None:
        """Send the terminal event of what was cut."""
        if cut.failure is not None:
            event: events.Terminal = cut.failure
        elif cut.then == "dropped" and not played_ms:  # else it began just then
            event = events.Dropped(reason=cut.reason)
        else:
            event = events.Cancelled(reason=cut.reason, heard_characters=heard, played_ms=played_ms)
        self._line.leave(cut.utterance, event, silent_ns)
