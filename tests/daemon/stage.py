"""A stage for the scheduler: stand-ins for workers, ring and player, and a clock set by hand.

They answer instructions with the messages that the real processes send, in the order in which the
real ones send them, but nothing arrives before `deliver` is called: so the tests choose how late.
A character is ten samples long, a sample lasts a millisecond, and a clause ends at "。".
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from utterd.audio import messages as audio
from utterd.daemon import events, instructions
from utterd.daemon.scheduler import Scheduler
from utterd.daemon.utterance import LIVING, Utterance
from utterd.engine import messages as engine

RATE = 1000
MS = 1_000_000
CHARACTER = 10
PAUSE = 5
CHUNK = 25
PERIOD = 10
LATENCY = 20 * MS
CAPACITY = 600
"""Samples that the ring holds."""

_CLAUSE = re.compile("[^。]*。?")


@dataclass(frozen=True, slots=True)
class Record:
    """Samples in the ring; each is the character it comes from, or -1 in a pause."""

    generation: int
    position: int
    samples: list[int]
    last: bool


class SimRing:
    """What is shared: records, revoked generations, how far was written."""

    def __init__(self) -> None:
        self.records: deque[Record] = deque()
        self.slots = [0] * 256
        self.fence = 1
        self.written = (0, 0)
        self.begun = 0

    @property
    def used(self) -> int:
        return sum(len(record.samples) for record in self.records)

    def revoke(self, generation: int) -> None:
        self.slots[generation % 256] = generation

    def is_dropped(self, generation: int) -> bool:
        return generation < self.fence or self.slots[generation % 256] == generation

    def write(self, record: Record) -> None:
        self.records.append(record)
        self.written = (record.generation, record.position + len(record.samples))


@dataclass(slots=True)
class Speaking:
    """A generation as its worker knows it."""

    position: int
    written: int
    over: bool = False
    sounded: bool = False
    segments: int = 0


class SimWorker:
    """The worker of one voice: takes `Say`, writes chunk by chunk, tells what it wrote."""

    def __init__(self, ring: SimRing) -> None:
        self.ring = ring
        self.inbox: deque[engine.Say] = deque()
        self.outbox: deque[engine.FromWorker] = deque()
        self.generations: dict[int, Speaking] = {}
        self._current: Iterator[None] | None = None
        self.fails = False
        """Fail the next piece."""

    @property
    def idle(self) -> bool:
        """Nothing that it has could still lead to a record in the ring."""
        is_open = any(not speaking.over for speaking in self.generations.values())
        return not self.inbox and self._current is None and not is_open

    def work(self, chunks: int = 1) -> None:
        """Write up to so many chunks."""
        for _ in range(chunks):
            if self._current is None and self.inbox:
                self._current = self._speak(self.inbox.popleft())
            if self._current is None:
                break
            if next(self._current, StopIteration) is StopIteration:
                self._current = None
        if self._current is None:
            self._sweep()

    def _sweep(self) -> None:
        for generation, speaking in self.generations.items():
            if not speaking.over and self.ring.is_dropped(generation):
                speaking.over = True
                self.outbox.append(engine.Abandoned(generation, speaking.position))

    def _speak(self, say: engine.Say) -> Iterator[None]:
        speaking = self.generations.setdefault(say.generation, Speaking(say.position, say.written))
        if speaking.over:
            return
        if self.fails:
            self.fails = False
            speaking.over = True
            self.outbox.append(engine.Failed(say.generation, "internal", "x", speaking.position))
            return
        clauses = [
            (say.offset + found.start(), say.offset + found.end())
            for found in _CLAUSE.finditer(say.text)
            if found.group() and say.offset + found.end() > say.begin
        ]
        for number, (start, end) in enumerate(clauses, start=1):
            last = say.final and number == len(clauses)
            for _ in self._segment(say, speaking, start, end, last=last):
                if self.ring.is_dropped(say.generation):
                    break
                yield
            if self.ring.is_dropped(say.generation):
                speaking.over = True
                self.outbox.append(engine.Abandoned(say.generation, speaking.position))
                return
        if say.final and not clauses:
            end = say.offset + len(say.text)
            self._tell_segment(say, speaking, end, end, 0, last=True)
            self._write(say, speaking, [], last=True)
        if say.final:
            speaking.over = True
            self.outbox.append(engine.Finished(say.generation, speaking.position, 1.0, 1.0))

    def _segment(
        self, say: engine.Say, speaking: Speaking, start: int, end: int, *, last: bool
    ) -> Iterator[None]:
        samples = [at for at in range(start, end) for _ in range(CHARACTER)]
        pause = 0 if last else PAUSE
        samples += [-1] * pause
        for begin in range(0, len(samples), CHUNK):
            while self.ring.used > CAPACITY and not self.ring.is_dropped(say.generation):
                yield
            if self.ring.is_dropped(say.generation):
                yield
                return
            chunk = samples[begin : begin + CHUNK]
            ends = begin + CHUNK >= len(samples)
            if ends:
                self._tell_segment(
                    say, speaking, start, end, begin, last=last, size=len(samples), pause=pause
                )
            self._write(say, speaking, chunk, last=last and ends)
            yield

    def _tell_segment(
        self,
        say: engine.Say,
        speaking: Speaking,
        start: int,
        end: int,
        passed: int,
        *,
        last: bool,
        size: int = 0,
        pause: int = 0,
    ) -> None:
        at = speaking.position - passed
        words = [engine.Word(c, c + 1, at + CHARACTER * (c - start)) for c in range(start, end)]
        marks = [engine.Mark("here", at)] if size else []
        self.outbox.append(
            engine.Segment(
                *(say.generation, speaking.segments, start, end, at, size),
                *(words, marks, [], last, pause),
            )
        )
        speaking.segments += 1

    def _write(
        self, say: engine.Say, speaking: Speaking, samples: list[int], *, last: bool
    ) -> None:
        known = max(0, speaking.written - speaking.position)
        fresh = samples[known:]
        at = speaking.position + len(samples) - len(fresh)
        if fresh or last:
            self.ring.write(Record(say.generation, at, fresh, last))
        speaking.position += len(samples)
        speaking.written = max(speaking.written, speaking.position)
        if not speaking.sounded and fresh:
            speaking.sounded = True
            self.outbox.append(engine.FirstAudio(say.generation, 1, 2, 3, 4, 5, 6))


@dataclass(frozen=True, slots=True)
class Heard:
    """A sample that reached the DAC."""

    generation: int
    position: int
    character: int
    dac_ns: int


class SimPlayer:
    """Takes samples from the ring at the pace of the clock and tells what became of them."""

    def __init__(self, ring: SimRing, heard: list[Heard]) -> None:
        self.ring = ring
        self.heard = heard
        self.outbox: deque[audio.FromPlayer] = deque()
        self.open = True
        self._generation = 0
        self._position = 0
        self._started = False
        self._anchor_due = False
        self._starved = False
        self._missing = 0
        self._reported = 0

    def close(self) -> None:
        """The device is gone."""
        self.open = False
        self._anchor_due = True

    def period(self, now_ns: int) -> None:
        """One callback: ten samples, or what there is."""
        self._drop(now_ns)
        if not self.open:
            return
        for index in range(PERIOD):
            dac_ns = now_ns + LATENCY + index * MS
            if not self._sample(dac_ns):
                self._missing += 1
        self._starved = self._generation != 0 and not self.ring.records

    def _drop(self, now_ns: int) -> None:
        silent_ns = now_ns + LATENCY
        if self._generation and self.ring.is_dropped(self._generation):
            self._reported = self._generation
            self.outbox.append(audio.Dropped(self._generation, self._position, silent_ns))
            self._generation = 0
        if self._generation:
            return
        while self.ring.records and self.ring.is_dropped(self.ring.records[0].generation):
            record = self.ring.records.popleft()
            if self._reported != record.generation:
                self._reported = record.generation
                self.outbox.append(audio.Dropped(record.generation, record.position, silent_ns))

    def _sample(self, dac_ns: int) -> bool:
        if not self.ring.records:
            return False
        record = self.ring.records[0]
        if not self._generation and self.ring.is_dropped(record.generation):
            self._drop(dac_ns - LATENCY)
            return self._sample(dac_ns)
        if not self._generation:
            self._generation, self._position = record.generation, record.position
            self.ring.begun = record.generation
            self._started, self._anchor_due, self._starved = False, True, False
        if self._starved:
            self._starved = False
            if record.samples:
                self._anchor_due = True
                self.outbox.append(
                    audio.Underrun(self._generation, self._position, self._missing, 1, dac_ns)
                )
        self._missing = 0
        if self._anchor_due and record.samples:
            self._anchor_due = False
            self.outbox.append(audio.Anchor(self._generation, record.position, dac_ns))
        if record.samples:
            self._hear(record, dac_ns)
        else:
            self.ring.records.popleft()
            self._end(record, dac_ns)
        return True

    def _hear(self, record: Record, dac_ns: int) -> None:
        self.heard.append(Heard(record.generation, record.position, record.samples[0], dac_ns))
        self._position = record.position + 1
        if not self._started:
            self._started = True
            self.outbox.append(audio.Started(record.generation, dac_ns, dac_ns))
        self.ring.records.popleft()
        if len(record.samples) > 1:
            rest = Record(record.generation, self._position, record.samples[1:], record.last)
            self.ring.records.appendleft(rest)
        else:
            self._end(record, dac_ns)

    def _end(self, record: Record, dac_ns: int) -> None:
        if not record.last:
            return
        if not self._started:
            self.outbox.append(audio.Started(record.generation, dac_ns, dac_ns))
        self.outbox.append(audio.Ended(record.generation, self._position, dac_ns))
        self._generation = 0


@dataclass(slots=True)
class Voice:
    """A voice as the daemon's supervisor sees it."""

    worker: SimWorker | None = None
    wanted: bool = False
    dead: bool = False
    """Its worker died and the daemon does not know it yet."""


@dataclass(slots=True)
class Stage:
    """The scheduler, its surroundings, and what came out."""

    scheduler: Scheduler
    ring: SimRing = field(default_factory=SimRing)
    now_ns: int = 10**12
    voices: dict[str, Voice] = field(default_factory=dict)
    heard: list[Heard] = field(default_factory=list)
    player: SimPlayer | None = None
    told: list[events.Event] = field(default_factory=list)
    silent: dict[int, tuple[instructions.Silent, int]] = field(default_factory=dict)
    """Answers to tickets, and when they came."""
    spoken_by: dict[int, Utterance] = field(default_factory=dict)
    """Whose each generation is."""
    revoked: set[int] = field(default_factory=set)

    @classmethod
    def set_up(cls, *voices: str, **limits: int) -> "Stage":
        """With these voices ready, and a player."""
        ring = SimRing()
        stage = cls(Scheduler(**limits), ring)
        stage.scheduler.line.revoke = stage.revoke
        stage.player = SimPlayer(stage.ring, stage.heard)
        for voice in voices:
            stage.ready(voice)
        return stage

    # ---- what the daemon does with instructions ----

    def revoke(self, generation: int) -> int:
        self.ring.revoke(generation)
        self.revoked.add(generation)
        return self.ring.begun

    def carry_out(self) -> None:
        for instruction in self.scheduler.drain():
            match instruction:
                case instructions.Emit():
                    self.told.append(instruction.event)
                case instructions.Send():
                    self._send(instruction.voice, instruction.message)
                case instructions.Need():
                    self.voice(instruction.voice).wanted = True
                case instructions.Silent():
                    assert instruction.ticket not in self.silent, "a ticket was answered twice"
                    self.silent[instruction.ticket] = instruction, self.now_ns
        self.ring.fence = max(self.ring.fence, self.scheduler.line.way.fence)

    def _send(self, name: str, message: engine.ToWorker) -> None:
        assert isinstance(message, engine.Say)
        owner = self.scheduler.line.way._writing[message.generation]
        assert self.spoken_by.setdefault(message.generation, owner) is owner
        voice = self.voice(name)
        if voice.worker is not None:
            voice.worker.inbox.append(message)

    def voice(self, name: str) -> Voice:
        return self.voices.setdefault(name, Voice())

    # ---- what happens ----

    def ready(self, name: str) -> None:
        """A worker has loaded its voice."""
        voice = self.voice(name)
        voice.worker, voice.dead = SimWorker(self.ring), False
        self.scheduler.worker_ready(name, RATE)
        self.carry_out()

    def broken(self, name: str) -> None:
        """A worker says that it can't work."""
        self.deliver_worker(name)
        self.voice(name).worker = None
        self.voice(name).wanted = False
        self.scheduler.voice_broken(name, "it is broken", self.now_ns)
        self.carry_out()

    def kill(self, name: str) -> None:
        """A worker dies; the daemon learns of it when all it said has been delivered."""
        voice = self.voice(name)
        if voice.worker is not None:
            voice.worker.inbox.clear()
            voice.dead = True

    def work(self, name: str, chunks: int = 1) -> None:
        """A worker goes on, alone."""
        voice = self.voice(name)
        if voice.worker is None or voice.dead:
            return
        before = self.ring.written
        voice.worker.work(chunks)
        if self.ring.written != before:
            for other, found in self.voices.items():
                if other != name and found.worker is not None and not found.dead:
                    assert found.worker.idle, f"{other} could write while {name} does"

    def work_all(self, chunks: int = 1) -> None:
        for name in self.voices:
            self.work(name, chunks)

    def deliver_worker(self, name: str, *, only_sound: bool = False) -> None:
        """Deliver what a worker said; `only_sound`: no further than its last `Segment`."""
        voice = self.voice(name)
        if voice.worker is None:
            return
        outbox = voice.worker.outbox
        count = len(outbox)
        if only_sound:
            sounds = [n for n, m in enumerate(outbox, 1) if isinstance(m, engine.Segment)]
            count = sounds[-1] if sounds else 0
        for _ in range(count):
            self.scheduler.worker_said(outbox.popleft(), self.now_ns)
            self.carry_out()
        if voice.dead and not outbox:
            voice.worker, voice.dead, voice.wanted = None, False, True
            self.scheduler.worker_lost(name, self.ring.written, self.now_ns)
            self.carry_out()

    def deliver_player(self, count: int = 1 << 30) -> None:
        """Deliver what the player said; workers spoke of segments before these could sound."""
        for name in list(self.voices):
            self.deliver_worker(name, only_sound=True)
        outbox = self.player.outbox if self.player else deque()
        while outbox and count > 0:
            count -= 1
            self.scheduler.sounding.player_said(outbox.popleft(), self.now_ns)
            self.carry_out()

    def deliver(self) -> None:
        for name in list(self.voices):
            self.deliver_worker(name)
        self.deliver_player()

    def pass_ms(self, ms: int) -> None:
        """Let the device play and the clock go on, but nobody say anything."""
        for _ in range(0, ms, PERIOD):
            if self.player is not None:
                self.player.period(self.now_ns)
            self.now_ns += PERIOD * MS
            self.tick_if_due()

    def tick_if_due(self) -> None:
        due = self.scheduler.next_deadline_ns()
        if due and due <= self.now_ns:
            self.scheduler.tick(self.now_ns)
            self.carry_out()

    def run(self, ms: int) -> None:
        """Everything goes its way for so long."""
        for _ in range(0, ms, PERIOD):
            self.work_all(4)
            self.deliver()
            self.pass_ms(PERIOD)

    def lose_device(self) -> None:
        if self.player is not None and self.player.open:
            self.deliver_player()
            self.player.close()
            self.scheduler.sounding.device_lost(self.now_ns)
            self.carry_out()

    def kill_player(self, *, told: bool) -> None:
        """The player dies, with or without having told what it knew."""
        if self.player is None:
            return
        if told:
            self.deliver_player()
        self.player = None
        self.scheduler.sounding.device_lost(self.now_ns)
        self.carry_out()

    def bring_sound_back(self) -> None:
        """The device is open again; a dead player was started anew."""
        if self.player is None:
            self.player = SimPlayer(self.ring, self.heard)
            if not self.ring.records:
                self.scheduler.sounding.ring_played(self.now_ns)
                self.carry_out()
        self.player.open = True

    # ---- looking ----

    def names(self, id_: str = "") -> list[str]:
        """Names of the events, of one utterance or of all."""
        tags = [(e.id, str(e.__struct_config__.tag)) for e in self.told]
        return [tag for found, tag in tags if not id_ or found == id_]

    def last(self, id_: str) -> events.Event:
        """The last event of an utterance."""
        return [event for event in self.told if event.id == id_][-1]

    def text_heard(self, id_: str) -> str:
        """What sounded of an utterance, character by character."""
        shown: list[str] = []
        before = (0, -2)
        for sample in self.heard:
            owner = self.spoken_by[sample.generation]
            at = sample.generation, sample.character
            if owner.id == id_ and at != before and sample.character >= 0:
                shown.append(owner.text[sample.character])
            before = at
        return "".join(shown)

    def order_heard(self) -> list[str]:
        """Ids in the order in which their generations sounded."""
        found: list[str] = []
        for sample in self.heard:
            id_ = self.spoken_by[sample.generation].id
            if not found or found[-1] != id_:
                found.append(id_)
        return found

    def living(self) -> list[Utterance]:
        return [u for u in self.scheduler.line.known.values() if u.state in LIVING]

    def tables(self) -> dict[str, int]:
        """Sizes of everything that must be empty when nothing lives."""
        way, cuts = self.scheduler.line.way, self.scheduler._cutting.cuts
        return {
            "known": len(self.scheduler.line.known),
            "waiting": len(self.scheduler.line.waiting),
            "arriving": len(self.scheduler.line.arriving._open),
            "on_way": len(way.on_way),
            "writing": len(way._writing),
            "orphans": len(way._orphans),
            "settling": len(cuts.settling),
            "tickets": len(cuts._tickets),
        }
