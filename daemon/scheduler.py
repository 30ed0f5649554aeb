"""Who speaks when: admission, order, interruption, return. Pure: stimuli in, instructions out.

Every method takes the time; nothing here waits, sends or reads a clock. What has to be done is
appended to `out`, which the caller drains after every stimulus.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from utterd.audio import messages as audio
from utterd.daemon import events
from utterd.daemon.arriving import Arriving, Pieces
from utterd.daemon.cuts import Cut, Cuts
from utterd.daemon.instructions import Emit, Instruction, Need, Revoke
from utterd.daemon.journal import Entry
from utterd.daemon.precedence import Effect, effect_on
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.records import Records
from utterd.daemon.utterance import LIVING, ON_ITS_WAY, Priority, State, Stimulus, Utterance
from utterd.daemon.way import RETRIES, Way
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
        written: looks up the generation and position up to which the ring holds samples.
    """

    def __init__(
        self,
        max_waiting: int = 100,
        max_characters: int = 20_000,
        stream_flush_ns: int = 300_000_000,
        stream_end_ns: int = 30_000_000_000,
        written: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:
        self.max_waiting = max_waiting
        self.max_characters = max_characters
        self.out: list[Instruction] = []
        self.paused = False
        self._written = written
        self.waiting: list[Utterance] = []
        """In the order in which they will speak."""
        self.records = Records()
        self._way = Way(self.out)
        self._cuts = Cuts(self.out)
        self._arriving = Arriving(stream_flush_ns, stream_end_ns)
        self._known: dict[tuple[str, str], Utterance] = {}
        """Utterances without a terminal event yet."""
        self._order = 0

    def drain(self) -> list[Instruction]:
        """Take what has to be done."""
        taken = self.out.copy()
        self.out.clear()
        return taken

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
        self._check_text(command)
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
        if utterance.key in self._known:
            raise ProtocolError("bad_request", f"the id {utterance.id!r} is in use", "id")
        superseded = self._superseded_by(utterance)
        leaving = [u for u in self._flushed_by(utterance) if u not in superseded]
        freed = sum(other in self.waiting for other in (*superseded, *leaving))
        # An important one passes where others no longer do, if only so far.
        important = utterance.priority is Priority.important
        room = self.max_waiting * (2 if important else 1)
        if len(self.waiting) - freed >= room:
            raise ProtocolError(
                "queue_full",
                f"{len(self.waiting)} utterances are waiting",
                retry_after_ms=self._retry_after_ms(),
            )
        admit(utterance)
        self._known[utterance.key] = utterance
        self.records.spoke(client, command)
        for other in superseded:
            if other.started:  # and displaced since: it was heard in part
                self._cancel(other, "superseded", now_ns)
            else:
                self._drop(other, "superseded", now_ns)
        for other in leaving:
            self._cancel(other, "flushed" if command.queue == "flush" else "replaced", now_ns)
        if command.more:
            utterance.text, utterance.pieces = self._arriving.begin(
                utterance.key, command.text, now_ns
            )
        else:
            utterance.pieces = [Piece(command.text, 0)]
        self._make_way(utterance, now_ns)
        self._enqueue(utterance)
        ahead = self.waiting.index(utterance) + len(self._way.on_way)
        self._emit(utterance, events.Accepted(ahead=ahead))
        if utterance.priority is Priority.notification and ahead:
            self._drop(utterance, "busy", now_ns)
        self._dispatch()
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
        self._known[utterance.key] = utterance
        self._enqueue(utterance)
        self._emit(utterance, events.Accepted(ahead=self.waiting.index(utterance)))
        self._dispatch()

    def over(self, client: str, id_: str, event: events.Terminal) -> None:
        """Tell the end of an utterance of an earlier daemon that can't be taken up."""
        self.out.append(Emit(events.of(event, client, id_)))
        self.records.ended((client, id_), event)

    def append(self, client: str, id_: str, text: str, now_ns: int) -> None:
        """Add text to an utterance begun with `more`.

        Raises:
            ProtocolError: `unknown_id`, `bad_request` where the text is complete, `too_long`.
        """
        utterance = self._find_open(client, id_)
        if len(utterance.text) + len(text) > self.max_characters:
            raise ProtocolError(
                "too_long", f"the text would exceed {self.max_characters} characters", "text"
            )
        whole, pieces = self._arriving.push(utterance.key, text, now_ns)
        utterance.text += whole
        self.records.spoke(client, msgspec.structs.replace(utterance.command, text=utterance.text))
        self._extend(utterance, pieces)

    def finish(self, client: str, id_: str) -> None:
        """Complete an utterance begun with `more`.

        Raises:
            ProtocolError: `unknown_id`, `bad_request` where the text is complete already.
        """
        self._complete(self._find_open(client, id_))

    def cancel(self, now_ns: int, client: str, id_: str = "", *, everyone: bool = False) -> int:
        """Cancel one utterance of a client, all of a client, or all.

        Returns:
            Number of a ticket, answered by a `Silent` instruction.

        Raises:
            ProtocolError: `unknown_id`.
        """
        if id_:
            chosen = [self._find(client, id_)]
        else:
            chosen = [u for u in self.living if everyone or u.client == client]
        return self._silence(chosen, "cancelled", now_ns)

    def stop(self, now_ns: int, reason: str = "stopped") -> int:
        """Cancel what sounds now (or is about to), whoever asked for it.

        Returns:
            Number of a ticket, answered by a `Silent` instruction.
        """
        return self._silence(self._way.on_way[:1], reason, now_ns)

    def pause(self, now_ns: int) -> int:
        """Hold everything but `important` utterances; what sounds will go on from its clause.

        Returns:
            Number of a ticket, answered by a `Silent` instruction.
        """
        self.paused = True
        held = [u for u in self._way.on_way if u.priority is not Priority.important]
        ticket = self._cuts.ticket({u.generation for u in held}, 0)
        for utterance in reversed(held):
            self._displace(utterance, "paused", now_ns)
        self._dispatch()
        self._cuts.answer(ticket)
        return ticket.number

    def resume(self) -> None:
        """Go on after `pause`."""
        self.paused = False
        self._dispatch()

    def close(self, now_ns: int) -> None:
        """Cancel everything at once: the daemon ends."""
        self._silence(self.living, "shutdown", now_ns)
        for generation, cut in list(self._cuts.settling.items()):
            self._settle(generation, cut.utterance.position_at(cut.cut_ns), 0)

    # ---- the worker's side ----

    def worker_ready(self, voice: str, sample_rate: int) -> None:
        """A voice can speak (again)."""
        self._way.worker_ready(voice, sample_rate)
        self._dispatch()

    def worker_unloaded(self, voice: str) -> None:
        """The worker of a voice that has nothing to say was ended."""
        self._way.rates.pop(voice, None)

    def worker_lost(self, voice: str, written: tuple[int, int], now_ns: int) -> None:
        """A worker died.

        Args:
            voice: its voice.
            written: generation and position up to which the ring holds samples.
            now_ns: now.
        """
        for utterance in self._way.worker_lost(voice, written):
            failure = events.Failed(
                code="internal",
                message=f"the voice {voice} died {RETRIES + 1} times while speaking this",
                recoverable=False,
            )
            self._fail(utterance, failure, now_ns)
        self._dispatch()

    def voice_broken(self, voice: str, message: str, now_ns: int) -> None:
        """A voice can't be loaded, or its worker gave up: what still needs it fails."""
        failure = events.Failed(code="unavailable", message=message, recoverable=True)
        for utterance in self.living:
            is_written = utterance in self._way.on_way and not self._way.writes(utterance)
            if utterance.voice == voice and not is_written:
                self._fail(utterance, failure, now_ns)
        self._way.worker_lost(voice, (0, 0))
        self._dispatch()

    def worker_said(self, message: engine.FromWorker, now_ns: int) -> None:
        """Take a message of a worker about a generation that goes to the ring."""
        utterance = self._way.current(getattr(message, "generation", 0))
        match message:
            case engine.FirstAudio() if utterance:
                utterance.in_ring = True
                for stage in WORKER_STAGES:
                    utterance.stages.setdefault(stage, getattr(message, f"{stage}_ns"))
            case engine.Segment() if utterance:
                utterance.learn(message)
                for it in message.skipped:
                    skipped = events.Skipped(
                        start=it.start, end=it.end, text=it.text, reason=it.reason
                    )
                    self._emit(utterance, skipped)
            case engine.Finished() | engine.Abandoned():
                self._way.written(message.generation)
                self._dispatch()
            case engine.Failed():
                self._way.written(message.generation)
                if utterance:
                    failure = events.Failed(
                        code=message.code,
                        message=message.message,
                        recoverable=message.code == "unavailable",
                    )
                    self._fail(utterance, failure, now_ns)
                self._dispatch()

    # ---- the player's side ----

    def player_said(self, message: audio.FromPlayer, now_ns: int) -> None:
        """Take a message of the player about a generation."""
        utterance = self._way.current(getattr(message, "generation", 0))
        if utterance is not None:
            self._has_begun(utterance, now_ns)
        match message:
            case audio.Started() if utterance:
                self._sounds(utterance, message)
            case audio.Anchor() if utterance:
                utterance.in_ring = True
                utterance.anchor = (message.position, message.dac_ns)
            case audio.Underrun() if utterance:
                self._runs_dry(utterance, message)
            case audio.Ended() if utterance:
                self._ends(utterance, message, now_ns)
            case audio.Ended():
                self._ended_though_cut(message, now_ns)
            case audio.Dropped():
                self._settle(message.generation, message.samples, message.silent_ns)
        self._dispatch()

    def device_lost(self, now_ns: int) -> None:
        """Nothing sounds any more; what did stands still until its next anchor."""
        for utterance in self._way.on_way:
            utterance.stand_still(utterance.position_at(now_ns))

    def ring_played(self, now_ns: int) -> None:
        """A new player found an empty ring: its predecessor played all that was written."""
        while self._way.on_way and not self._way.writes(self._way.on_way[0]):
            self._ends_untold(self._way.on_way[0], now_ns)
        self._dispatch()

    # ---- time ----

    def next_deadline_ns(self) -> int:
        """When `tick` is due; 0 if never."""
        deadlines = self._cuts.deadlines_ns() + self._arriving.deadlines_ns()
        deadlines += [u.deadline_ns for u in self.living if u.may_expire]
        if self._way.on_way and (due := self._way.on_way[0].next_cue_ns()):
            deadlines.append(due)
        return min(deadlines, default=0)

    def tick(self, now_ns: int) -> None:
        """Do what has become due: words, expiry, texts that stopped arriving, silent players."""
        for generation in self._cuts.overdue(now_ns):
            cut = self._cuts.settling[generation]
            self._settle(generation, cut.utterance.position_at(cut.cut_ns), 0)
        for utterance in [u for u in self.living if u.may_expire]:
            if utterance.deadline_ns <= now_ns:
                self._drop(utterance, "expired", now_ns)
        for key in self._arriving.stale(now_ns):
            self._complete(self._known[key])
        for key, pieces in self._arriving.flush(now_ns):
            self._extend(self._known[key], pieces)
        if self._way.on_way:
            self._cue(self._way.on_way[0], now_ns)
        self._dispatch()

    # ---- looking ----

    @property
    def on_way(self) -> list[Utterance]:
        """Given to a worker or sounding, in order."""
        return self._way.on_way

    @property
    def fence(self) -> int:
        """The lowest generation that may still sound."""
        return self._way.fence

    @property
    def living(self) -> list[Utterance]:
        """All that live: on their way first, then waiting, in order."""
        return [*self._way.on_way, *self.waiting]

    def find(self, client: str, id_: str) -> Utterance | None:
        """An utterance without a terminal event."""
        return self._known.get((client, id_))

    def needs(self, voice: str) -> bool:
        """Whether a voice's worker has speech to make, or will have next."""
        return self._way.needs(voice) or any(
            u.voice == voice and not self._is_held(u) for u in self.waiting
        )

    def snapshot(self) -> dict[str, Any]:
        """The queue as `status` shows it."""
        return {
            "paused": self.paused,
            "speaking": [u.describe() for u in self._way.on_way],
            "waiting": [u.describe() for u in self.waiting],
            "ended": dict(self.records.counts),
        }

    # ---- admission ----

    def _check_text(self, command: Speak) -> None:
        if not command.more and not command.text.strip():
            raise ProtocolError("bad_request", "the text is empty", "text")
        if len(command.text) > self.max_characters:
            raise ProtocolError(
                "too_long",
                f"the text has {len(command.text)} characters; "
                f"at most {self.max_characters} are spoken at once",
                "text",
            )
        if command.more and command.format != "plain":
            raise ProtocolError("bad_request", "only plain text can arrive in pieces", "more")

    def _free_id(self, client: str) -> str:
        while (client, f"u{self._order}") in self._known:
            self._order += 1
        return f"u{self._order}"

    def _superseded_by(self, utterance: Utterance) -> list[Utterance]:
        """Utterances with the same key that wait, be it in the ring."""
        key = utterance.command.key
        return [
            other
            for other in (*self._way.on_way[1:], *self.waiting)
            if key and other.client == utterance.client and other.command.key == key
        ]

    def _flushed_by(self, utterance: Utterance) -> list[Utterance]:
        """What `queue` flush or replace cancels."""
        if utterance.command.queue == "flush":
            pool = self.living
        elif utterance.command.queue == "replace":
            pool = self._way.on_way[:1]
        else:
            return []
        return [
            other
            for other in pool
            if other.client == utterance.client and other.command.interruptible
        ]

    def _make_way(self, utterance: Utterance, now_ns: int) -> None:
        """Let a new utterance act on those that are there, by the table of precedence."""
        may_be_dropped = utterance.priority is Priority.notification
        for other in reversed(self.living):
            on_way, sounds = other.state in ON_ITS_WAY, self._sounds_next(other)
            effect = effect_on(utterance.priority, other.priority, sounds=sounds)
            if not other.command.interruptible:
                continue
            # What is ahead in the ring only waits there, and must not keep a higher one waiting.
            is_passed = not sounds and utterance.priority < other.priority
            if effect is Effect.CANCEL:
                self._cancel(other, "superseded", now_ns)
            elif on_way and (effect is Effect.DISPLACE or (is_passed and not may_be_dropped)):
                self._displace(other, "displaced", now_ns)

    def _sounds_next(self, utterance: Utterance) -> bool:
        return self._way.on_way[:1] == [utterance]

    def _enqueue(self, utterance: Utterance) -> None:
        self.waiting.append(utterance)
        self.waiting.sort(key=lambda u: (u.priority, u.order))

    def _retry_after_ms(self) -> int:
        """A guess: the time that the text in front takes to speak, at 200 ms a character."""
        front = self.living[0]
        return min(10_000, max(200, int(len(front.text) * 200 / front.command.rate)))

    # ---- text in pieces ----

    def _find_open(self, client: str, id_: str) -> Utterance:
        utterance = self._find(client, id_)
        if utterance.closed:
            raise ProtocolError("bad_request", f"the text of {id_!r} is complete", "id")
        return utterance

    def _complete(self, utterance: Utterance) -> None:
        pieces = self._arriving.finish(utterance.key)
        utterance.closed = True
        if not utterance.pieces and not pieces:
            pieces = [Piece("", 0)]
        self._extend(utterance, pieces)

    def _extend(self, utterance: Utterance, pieces: Pieces) -> None:
        utterance.pieces += pieces
        self._way.feed(utterance)
        self._dispatch()

    # ---- on the way ----

    def _dispatch(self) -> None:
        """Send waiting utterances on their way, as far as there is room."""
        while (utterance := self._next()) is not None:
            if utterance.voice not in self._way.rates:
                self.out.append(Need(utterance.voice))
                return
            if not self._way.takes(utterance):
                return
            self.waiting.remove(utterance)
            self._way.begin(utterance)

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

    def _has_begun(self, utterance: Utterance, now_ns: int) -> None:
        """The ring keeps its order: what was before it is over, even if a lost player told not."""
        while self._way.on_way[0] is not utterance:
            self._ends_untold(self._way.on_way[0], now_ns)

    def _sounds(self, utterance: Utterance, message: audio.Started) -> None:
        if utterance.state is not State.DISPATCHED:
            return  # a player that was started anew says so again
        utterance.apply(Stimulus.SOUND)
        sound_ns = message.first_sound_ns
        if utterance.started:
            self._emit(
                utterance, events.Resumed(start=utterance.resume_at, dac_ns=sound_ns), sound_ns
            )
            return
        utterance.started = True
        utterance.stages["first_sound"] = sound_ns
        self._emit(utterance, events.Started(dac_ns=sound_ns, voice=utterance.voice), sound_ns)

    def _runs_dry(self, utterance: Utterance, message: audio.Underrun) -> None:
        if message.missing_ms:
            utterance.stand_still(message.position)
        if utterance.closed:  # else it is the text that is late, not the samples
            self._emit(
                utterance, events.Underrun(missing_ms=message.missing_ms, count=message.count)
            )

    def _cue(self, utterance: Utterance, now_ns: int) -> None:
        """Publish the words and marks that sound by now."""
        while (due := utterance.next_cue_ns()) and due <= now_ns:
            self._emit(utterance, *utterance.take_cue())

    def _ends(self, utterance: Utterance, message: audio.Ended, now_ns: int) -> None:
        self._cue(utterance, max(now_ns, message.dac_ns))
        if utterance.state in ON_ITS_WAY:
            self._way.leave(utterance)
        else:
            self.waiting.remove(utterance)
        utterance.apply(Stimulus.FINISH)
        utterance.stages["last_sound"] = message.dac_ns
        ended = events.Ended(
            dac_ns=message.dac_ns,
            played_ms=utterance.played_ms(message.samples),
            stages=utterance.stages,
            durations_ms=utterance.durations_ms(),
        )
        self._terminal(utterance, ended, message.dac_ns)

    def _ends_untold(self, utterance: Utterance, now_ns: int) -> None:
        """It was heard to its end, but the player died before it said so."""
        ended = audio.Ended(utterance.generation, utterance.known_samples, now_ns)
        self._ends(utterance, ended, now_ns)

    def _ended_though_cut(self, message: audio.Ended, now_ns: int) -> None:
        """Its last sample was with the device already when it was cut."""
        cut = self._cuts.settling.get(message.generation)
        if cut is not None and cut.then == "displaced":
            self._cuts.take(message.generation)
            self._ends(cut.utterance, message, now_ns)
            self._cuts.silent(message.generation, message.dac_ns)
        else:
            self._settle(message.generation, message.samples, message.dac_ns)

    # ---- cutting ----

    def _silence(self, chosen: list[Utterance], reason: str, now_ns: int) -> int:
        cut = {u.generation for u in chosen if u.state in ON_ITS_WAY or u.settling}
        ticket = self._cuts.ticket(cut, len(chosen))
        for utterance in chosen:
            self._cancel(utterance, reason, now_ns)
        self._dispatch()
        self._cuts.answer(ticket)
        return ticket.number

    def _cancel(self, utterance: Utterance, reason: str, now_ns: int) -> None:
        self._cut_short(utterance, Stimulus.CANCEL, Cut(utterance, "cancelled", reason), now_ns)

    def _drop(self, utterance: Utterance, reason: str, now_ns: int) -> None:
        self._cut_short(utterance, Stimulus.DROP, Cut(utterance, "dropped", reason), now_ns)

    def _fail(self, utterance: Utterance, failure: events.Failed, now_ns: int) -> None:
        cut = Cut(utterance, "failed", failure=failure)
        self._cut_short(utterance, Stimulus.FAIL, cut, now_ns)

    def _cut_short(self, utterance: Utterance, stimulus: Stimulus, cut: Cut, now_ns: int) -> None:
        """End a living utterance before its time, wherever it is."""
        on_way = utterance.state in ON_ITS_WAY
        utterance.apply(stimulus)
        if on_way:
            self._cut(cut, now_ns)
            return
        self.waiting.remove(utterance)
        if utterance.settling:  # displaced just now: the player's word is waited for all the same
            self._cuts.replace(cut)
        else:
            self._conclude(cut, utterance.earlier_heard, utterance.earlier_ms, 0)

    def _displace(self, utterance: Utterance, reason: str, now_ns: int) -> None:
        """Cut an utterance on its way that will go on later, if it may."""
        is_cut = reason == "displaced" and self._sounds_next(utterance)
        if is_cut and utterance.command.on_interrupt == "drop":
            self._cancel(utterance, reason, now_ns)
            return
        spoke = utterance.state is State.SPEAKING
        utterance.apply(Stimulus.DISPLACE)
        utterance.settling = True
        self._enqueue(utterance)
        self._cut(Cut(utterance, "displaced", reason, spoke=spoke), now_ns)

    def _cut(self, cut: Cut, now_ns: int) -> None:
        """Silence a generation; what becomes of its utterance waits for the player's word."""
        utterance = cut.utterance
        self.out.append(Revoke(utterance.generation))
        behind_others = utterance is not self._way.on_way[0]
        self._way.leave(utterance)
        self._cuts.begin(cut, now_ns)
        # Its first samples may be in the ring before its worker's word of it comes.
        made = utterance.in_ring or self._written()[0] == utterance.generation
        if behind_others or not made:
            self._settle(utterance.generation, 0, 0)

    def _settle(self, generation: int, samples: int, silent_ns: int) -> None:
        """A cut generation is silent, and this much of it was heard."""
        cut = self._cuts.take(generation)
        if cut is None:
            return
        utterance = cut.utterance
        heard = utterance.heard_characters(samples)
        if cut.then == "displaced":
            self._comes_back(cut, samples, heard)
        else:
            self._conclude(cut, heard, utterance.played_ms(samples), silent_ns)
        self._cuts.silent(generation, silent_ns)

    def _comes_back(self, cut: Cut, samples: int, heard: int) -> None:
        """A displaced utterance may be dispatched again, from the clause it was in."""
        utterance = cut.utterance
        utterance.settling = False
        restart = utterance.command.on_interrupt == "restart" and cut.reason == "displaced"
        utterance.resume_at = 0 if restart else utterance.resumes_from(samples)
        utterance.earlier_ms = utterance.played_ms(samples)
        utterance.earlier_heard = heard
        if cut.spoke:
            self._emit(utterance, events.Paused(reason=cut.reason, heard_characters=heard))

    def _conclude(self, cut: Cut, heard: int, played_ms: float, silent_ns: int) -> None:
        """Send the terminal event of what was cut."""
        if cut.failure is not None:
            event: events.Terminal = cut.failure
        elif cut.then == "dropped":
            event = events.Dropped(reason=cut.reason)
        else:
            event = events.Cancelled(reason=cut.reason, heard_characters=heard, played_ms=played_ms)
        self._terminal(cut.utterance, event, silent_ns)

    # ---- the end ----

    def _terminal(self, utterance: Utterance, event: events.Terminal, at_ns: int = 0) -> None:
        del self._known[utterance.key]
        self._arriving.forget(utterance.key)
        self._emit(utterance, event, at_ns)
        self.records.ended(utterance.key, event)

    def _emit(self, utterance: Utterance, event: events.Event, at_ns: int = 0) -> None:
        self.out.append(Emit(events.of(event, utterance.client, utterance.id), at_ns))

    def _find(self, client: str, id_: str) -> Utterance:
        utterance = self._known.get((client, id_))
        if utterance is None or utterance.state not in LIVING:
            raise ProtocolError("unknown_id", f"no utterance {id_!r} of this client lives", "id")
        return utterance
