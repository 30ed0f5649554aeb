"""Who speaks when: admission, order, interruption, return. Pure: stimuli in, instructions out.

Every method takes the time; nothing here waits, sends or reads a clock. What has to be done is
appended to `out`, which the caller drains after every stimulus.
"""

from collections.abc import Callable

import msgspec

from utterd.daemon import events
from utterd.daemon.admission import Admission
from utterd.daemon.arriving import Arriving
from utterd.daemon.cutting import Cutting
from utterd.daemon.instructions import Emit, Instruction
from utterd.daemon.journal import Entry
from utterd.daemon.line import Line
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.sounding import Sounding
from utterd.daemon.utterance import Priority, Utterance
from utterd.daemon.way import RETRIES
from utterd.engine import messages as engine
from utterd.engine.frontend.stream import Piece

WORKER_STAGES = ("started_synthesis", "phonemes", "encoded", "first_chunk", "first_written")


class Scheduler:
    """The queue and everything that is on its way to the speaker.

    Args:
        max_waiting: utterances that may wait; more are refused.
        max_characters: of one text.
        stream_flush_ns: an open text that gets no token for so long is spoken as far as it has
            come.
        stream_end_ns: an open text that gets no token for so long is complete.
        revoke: sees to it that no further sample of a generation sounds, and gives the generation
            that the device began last.
    """

    def __init__(
        self,
        max_waiting: int = 100,
        max_characters: int = 20_000,
        stream_flush_ns: int = 300_000_000,
        stream_end_ns: int = 30_000_000_000,
        revoke: Callable[[int], int] = lambda _: 0,
    ) -> None:
        self.out: list[Instruction] = []
        self.line = Line(self.out, Arriving(stream_flush_ns, stream_end_ns), revoke)
        self._cutting = Cutting(self.line)
        self._admission = Admission(self.line, self._cutting, max_waiting, max_characters)
        self.sounding = Sounding(self.line, self._cutting)
        """Takes what the player says."""
        self._order = 0

    def drain(self) -> list[Instruction]:
        """Take what has to be done."""
        taken = self.out.copy()
        self.out.clear()
        return taken

    @property
    def is_silent(self) -> bool:
        """Whether nothing is on its way to the speaker, or just cut and not yet silent."""
        return not self.line.way.on_way and not self._cutting.cuts.settling

    # ---- commands ----

    def speak(
        self,
        command: Speak,
        client: str,
        voice: tuple[str, str],
        received_ns: int,
        now_ns: int,
        *,
        admit: Callable[[Utterance], None] = lambda utterance: None,
    ) -> Utterance:
        """Admit an utterance.

        Args:
            command: what to speak.
            client: who asks.
            voice: name of an installed voice package, and speaker or "".
            received_ns: when the message came in.
            now_ns: now.
            admit: called when nothing else speaks against it; may refuse it with a
                `ProtocolError`.

        Returns:
            The utterance; it may be over at once (a notification while others speak).

        Raises:
            ProtocolError: `bad_request` for an empty text or an id that lives, `too_long`,
                `queue_full` (with `retry_after_ms`).
        """
        self._admission.check_text(command)
        self._order += 1
        utterance = Utterance(
            command=command,
            client=client,
            id=command.id or self._free_id(client),
            voice=voice[0],
            speaker=voice[1],
            order=self._order,
            stages={"received": received_ns, "admitted": now_ns},
            deadline_ns=received_ns + command.ttl_ms * 1_000_000 if command.ttl_ms else 0,
            text=command.text,
            closed=not command.more,
        )
        leaving = self._admission.check_room(utterance)
        admit(utterance)
        self.line.records.spoke(client, command)
        self._admission.let_go(leaving, now_ns)
        if command.more:
            utterance.text, utterance.pieces = self.line.arriving.begin(
                utterance.key, command.text, now_ns
            )
        else:
            utterance.pieces = [Piece(command.text, 0)]
        self._admission.make_way(utterance, now_ns)
        self.line.enter(utterance)
        is_first = self.line.living[:1] == [utterance]
        if utterance.priority is Priority.notification and not is_first:
            self._cutting.drop(utterance, "busy", now_ns)
        self.line.dispatch()
        return utterance

    def restore(self, entry: Entry, voice: tuple[str, str], expires_ns: int, now_ns: int) -> None:
        """Take up a durable utterance of an earlier daemon, from the clause it was in.

        Args:
            entry: what the journal holds.
            voice: as in `speak`.
            expires_ns: when it is too late, CLOCK_MONOTONIC; 0: never.
            now_ns: now.
        """
        self._order += 1
        utterance = Utterance(
            command=entry.command,
            client=entry.client,
            id=entry.id,
            voice=voice[0],
            speaker=voice[1],
            order=self._order,
            stages={"received": now_ns, "admitted": now_ns},
            deadline_ns=expires_ns,
            text=entry.text,
            closed=True,
            pieces=[Piece(entry.text, 0)],
            resume_at=entry.resume_at,
            earlier_heard=entry.resume_at,
        )
        self.line.enter(utterance)
        self.line.dispatch()

    def over(self, client: str, id_: str, event: events.Terminal) -> None:
        """Tell the end of an utterance of an earlier daemon that can't be taken up."""
        self.out.append(Emit(events.of(event, client, id_)))
        self.line.records.ended((client, id_), event)

    def append(self, client: str, id_: str, text: str, now_ns: int) -> None:
        """Add text to an utterance begun with `more`.

        Raises:
            ProtocolError: `unknown_id`, `bad_request` where the text is complete, `too_long`.
        """
        utterance = self._find_open(client, id_)
        self._admission.check_more(utterance, text)
        whole, pieces = self.line.arriving.push(utterance.key, text, now_ns)
        utterance.text += whole
        self.line.records.spoke(
            client, msgspec.structs.replace(utterance.command, text=utterance.text)
        )
        self.line.extend(utterance, pieces)

    def finish(self, client: str, id_: str, now_ns: int) -> None:
        """Complete an utterance begun with `more`.

        Raises:
            ProtocolError: `unknown_id`, `bad_request` where the text is complete already.
        """
        self.line.complete(self._find_open(client, id_), now_ns)

    def cancel(self, now_ns: int, client: str, id_: str = "", *, everyone: bool = False) -> int:
        """Cancel one utterance of a client, all of a client, or all.

        Returns:
            Number of a ticket, answered by a `Silent` instruction.

        Raises:
            ProtocolError: `unknown_id`.
        """
        if id_:
            chosen = [self.line.find(client, id_)]
        else:
            chosen = [u for u in self.line.living if everyone or u.client == client]
        return self._cutting.silence(chosen, "cancelled", now_ns)

    def stop(self, now_ns: int, reason: str = "stopped") -> int:
        """Cancel what sounds now (or is about to), whoever asked for it.

        Returns:
            Number of a ticket, answered by a `Silent` instruction.
        """
        return self._cutting.silence(self.line.way.on_way[:1], reason, now_ns)

    def pause(self, now_ns: int) -> int:
        """Hold everything but `important` utterances; what sounds will go on from its clause.

        Returns:
            Number of a ticket, answered by a `Silent` instruction.
        """
        self.line.paused = True
        on_way = self.line.way.on_way
        held = [u for u in on_way if u.priority is not Priority.important]
        return self._cutting.hold(held, now_ns)

    def resume(self) -> None:
        """Go on after `pause`."""
        self.line.paused = False
        self.line.dispatch()

    def close(self, now_ns: int) -> None:
        """Cancel everything at once: the daemon ends."""
        self._cutting.silence(self.line.living, "shutdown", now_ns)
        for generation in list(self._cutting.cuts.settling):
            self._cutting.settle_by_clock(generation)

    # ---- the worker's side ----

    def worker_ready(self, voice: str, sample_rate: int) -> None:
        """A voice can speak (again)."""
        self.line.way.worker_ready(voice, sample_rate)
        self.line.dispatch()

    def worker_unloaded(self, voice: str) -> None:
        """The worker of a voice that has nothing to say was ended."""
        self.line.way.rates.pop(voice, None)

    def worker_lost(self, voice: str, written: tuple[int, int], now_ns: int) -> None:
        """A worker died.

        Args:
            voice: its voice.
            written: generation and position up to which the ring holds samples.
            now_ns: now.
        """
        for utterance in self.line.way.worker_lost(voice, written):
            failure = events.Failed(
                code="internal",
                message=f"the voice {voice} died {RETRIES + 1} times while speaking this",
                recoverable=False,
            )
            self._cutting.fail(utterance, failure, now_ns)
        self.line.dispatch()

    def voice_broken(self, voice: str, message: str, now_ns: int) -> None:
        """A voice can't be loaded, or its worker gave up: what still needs it fails."""
        failure = events.Failed(code="unavailable", message=message, recoverable=True)
        for utterance in self.line.living:
            is_written = utterance in self.line.way.on_way and not self.line.way.writes(utterance)
            if utterance.voice == voice and not is_written:
                self._cutting.fail(utterance, failure, now_ns)
        self.line.way.worker_lost(voice, (0, 0))
        self.line.dispatch()

    def worker_said(self, message: engine.FromWorker, now_ns: int) -> None:
        """Take a message of a worker about a generation that goes to the ring."""
        utterance = self.line.way.current(getattr(message, "generation", 0))
        match message:
            case engine.FirstAudio() if utterance:
                for stage in WORKER_STAGES:
                    utterance.stages.setdefault(stage, getattr(message, f"{stage}_ns"))
            case engine.Segment() if utterance:
                utterance.learn(message)
                for it in message.skipped:
                    skipped = events.Skipped(
                        start=it.start, end=it.end, text=it.text, reason=it.reason
                    )
                    self.line.emit(utterance, skipped)
            case engine.Segment():
                # Cut when this was on its way: what was heard of it is still to be told.
                if cut := self._cutting.cuts.settling.get(message.generation):
                    cut.utterance.learn(message)
            case engine.Finished() | engine.Abandoned():
                self.line.way.written(message.generation)
                self.line.dispatch()
            case engine.Failed():
                self.line.way.written(message.generation)
                if utterance:
                    failure = events.Failed(
                        code=message.code,
                        message=message.message,
                        recoverable=message.code == "unavailable",
                    )
                    self._cutting.fail(utterance, failure, now_ns)
                self.line.dispatch()

    # ---- time ----

    def next_deadline_ns(self) -> int:
        """When `tick` is due; 0 if never."""
        deadlines = self._cutting.cuts.deadlines_ns() + self.line.arriving.deadlines_ns()
        deadlines += [u.deadline_ns for u in self.line.living if u.may_expire]
        if due := self.sounding.next_cue_ns():
            deadlines.append(due)
        return min(deadlines, default=0)

    def tick(self, now_ns: int) -> None:
        """Do what has become due: words, expiry, texts that stopped arriving, silent players."""
        for generation in self._cutting.cuts.overdue(now_ns):
            self._cutting.settle_by_clock(generation)
        for utterance in [u for u in self.line.living if u.may_expire]:
            if utterance.deadline_ns <= now_ns:
                self._cutting.drop(utterance, "expired", now_ns)
        for key in self.line.arriving.stale(now_ns):
            self.line.complete(self.line.known[key], now_ns)
        for key, pieces in self.line.arriving.flush(now_ns):
            self.line.extend(self.line.known[key], pieces)
        self.sounding.cue(now_ns)
        self.line.dispatch()

    # ---- inside ----

    def _free_id(self, client: str) -> str:
        while (client, f"u{self._order}") in self.line.known:
            self._order += 1
        return f"u{self._order}"

    def _find_open(self, client: str, id_: str) -> Utterance:
        utterance = self.line.find(client, id_)
        if utterance.closed:
            raise ProtocolError("bad_request", f"the text of {id_!r} is complete", "id")
        return utterance
