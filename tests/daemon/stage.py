"""A stage for the scheduler: stand-ins for workers, ring and player, and a clock set by hand.

They answer instructions with the messages that the real processes send, in the order in which the
real ones send them, but nothing arrives before `deliver` is called: so the tests choose how late.
"""

from collections import deque
from dataclasses import dataclass, field

from tests.daemon.sim_player import MS, PERIOD, Heard, SimPlayer
from tests.daemon.sim_ring import SimRing
from tests.daemon.sim_worker import SimWorker
from utterd.daemon import events, instructions
from utterd.daemon.scheduler import Scheduler
from utterd.daemon.utterance import LIVING, Utterance
from utterd.engine import messages as engine

RATE = 1000


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
