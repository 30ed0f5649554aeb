"""The scheduler under thousands of operations in any order: nothing lost, repeated or stuck."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.daemon.sim_player import MS
from tests.daemon.sim_worker import CHARACTER
from tests.daemon.stage import Stage
from utterd.daemon import events
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.utterance import LIVING, Utterance

VOICES = ("one", "two")
OFTEN_ONE = ("one", "one", "two")
CLIENTS = ("a", "b")
THEN_MS = st.sampled_from((0, 0, 30, 80, 250))
"""How long all goes its way after a command."""
PRIORITIES = ("important", "message", "message", "text", "notification", "progress")
MAX_WAITING = 8
TEXTS = ("早。", "今天。天气好。", "一二三四五。六七。八九十。", "好的", "长" * 30 + "。完。")

speaks = st.fixed_dictionaries(
    {
        "text": st.sampled_from(TEXTS),
        "priority": st.sampled_from(PRIORITIES),
        "queue": st.sampled_from(("add", "add", "add", "flush", "replace")),
        "key": st.sampled_from(("", "", "k")),
        "ttl_ms": st.sampled_from((0, 0, 0, 50, 400)),
        "interruptible": st.sampled_from((True, True, False)),
        "on_interrupt": st.sampled_from(("resume", "resume", "restart", "drop")),
        "marks": st.booleans(),
        "id": st.sampled_from(("", "", "x", "y")),
    }
)


class Machine(RuleBasedStateMachine):
    """Operations on a stage, and what must hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage.set_up(
            max_waiting=MAX_WAITING,
            max_characters=200,
            stream_flush_ns=300 * MS,
            stream_end_ns=1000 * MS,
        )
        self.accepted: list[Utterance] = []
        self.open: set[tuple[str, str]] = set()
        """Keys in the order of events: accepted, and no terminal event yet."""
        self.paused_at: dict[tuple[str, str], int] = {}
        self.is_paused: set[tuple[str, str]] = set()
        self.started: set[tuple[str, str]] = set()
        self.seen_events = 0
        self.seen_heard = 0
        self.tickets: dict[int, set[int]] = {}
        """Generations that each ticket must have silenced."""
        self.estimated: set[int] = set()
        """Orders of utterances of which nobody said how far they were heard."""
        self.streams: set[int] = set()

    # ---- commands ----

    @initialize(first=st.sampled_from(VOICES))
    def load_a_voice(self, first: str) -> None:
        self.stage.ready(first)

    @property
    def sounds(self) -> bool:
        return bool(self.stage.scheduler.line.way.on_way)

    def _speak(self, client: str, voice: str, fields: dict[str, Any]) -> Utterance | None:
        stage = self.stage
        try:
            utterance = stage.scheduler.speak(
                Speak(**fields), client, (voice, ""), stage.now_ns, stage.now_ns
            )
        except ProtocolError as error:
            refusal = error
        else:
            self.accepted.append(utterance)
            stage.carry_out()
            return utterance
        assert refusal.code in ("bad_request", "queue_full")
        assert refusal.code != "queue_full" or refusal.extra["retry_after_ms"] > 0
        assert not stage.scheduler.drain(), "what is refused touches nothing"
        return None

    @rule(
        client=st.sampled_from(CLIENTS),
        voice=st.sampled_from(OFTEN_ONE),
        fields=speaks,
        then_ms=THEN_MS,
    )
    def speak(self, client: str, voice: str, fields: dict[str, Any], then_ms: int) -> None:
        self._speak(client, voice, fields)
        self._go_on(then_ms)

    @rule(
        client=st.sampled_from(CLIENTS),
        text=st.sampled_from(TEXTS),
        priority=st.sampled_from(("important", "message", "text")),
        then_ms=THEN_MS,
    )
    def speak_plainly(self, client: str, text: str, priority: str, then_ms: int) -> None:
        self._speak(client, "one", {"text": text, "priority": priority})
        self._go_on(then_ms)

    @rule(
        client=st.sampled_from(CLIENTS),
        text=st.sampled_from(("", "今", "今天。", "a。b。c")),
        fields=speaks,
        then_ms=THEN_MS,
    )
    def speak_in_pieces(self, client: str, text: str, fields: dict[str, Any], then_ms: int) -> None:
        utterance = self._speak(client, "one", fields | {"text": text, "more": True})
        if utterance is not None:
            self.streams.add(utterance.order)
        self._go_on(then_ms)

    @precondition(lambda self: self.open_texts())
    @rule(
        data=st.data(),
        text=st.sampled_from(("天", "好。", "a。b。c", "", "完。", None)),
        then_ms=THEN_MS,
    )
    def append_or_finish(self, data: st.DataObject, text: str | None, then_ms: int) -> None:
        utterance = data.draw(st.sampled_from(self.open_texts()))
        if text is None:
            self.stage.scheduler.finish(utterance.client, utterance.id, self.stage.now_ns)
        else:
            now_ns = self.stage.now_ns
            self.stage.scheduler.append(utterance.client, utterance.id, text, now_ns)
        self.stage.carry_out()
        self._go_on(then_ms)

    def open_texts(self) -> list[Utterance]:
        return [u for u in self.stage.living() if not u.closed]

    def _ticket(self, number: int, generations: set[int]) -> None:
        assert number not in self.tickets
        self.tickets[number] = generations
        self.stage.carry_out()

    @precondition(lambda self: self.stage.living())
    @rule(data=st.data())
    def cancel_one(self, data: st.DataObject) -> None:
        utterance = data.draw(st.sampled_from(self.stage.living()))
        number = self.stage.scheduler.cancel(self.stage.now_ns, utterance.client, utterance.id)
        self._ticket(number, {utterance.generation})

    @precondition(lambda self: self.sounds)
    @rule(client=st.sampled_from(CLIENTS), everyone=st.booleans(), then_ms=THEN_MS)
    def cancel_many(self, client: str, everyone: bool, then_ms: int) -> None:
        chosen = {u.generation for u in self.stage.living() if everyone or u.client == client}
        before = self.cut_before()
        number = self.stage.scheduler.cancel(self.stage.now_ns, client, everyone=everyone)
        self._ticket(number, chosen | before)
        self._go_on(then_ms)

    def cut_before(self) -> set[int]:
        return set(self.stage.scheduler._cutting.cuts.settling)

    @precondition(lambda self: self.sounds)
    @rule()
    def stop(self) -> None:
        silenced = {
            u.generation for u in self.stage.scheduler.line.way.on_way[:1]
        } | self.cut_before()
        self._ticket(self.stage.scheduler.stop(self.stage.now_ns), silenced)

    @precondition(lambda self: self.sounds)
    @rule(then_ms=THEN_MS)
    def pause(self, then_ms: int) -> None:
        on_way = self.stage.scheduler.line.way.on_way
        silenced = {u.generation for u in on_way if u.command.priority != "important"}
        silenced |= self.cut_before()
        self._ticket(self.stage.scheduler.pause(self.stage.now_ns), silenced)
        self._go_on(then_ms)

    @precondition(lambda self: self.stage.scheduler.line.paused)
    @rule(then_ms=THEN_MS)
    def resume(self, then_ms: int) -> None:
        self.stage.scheduler.resume()
        self.stage.carry_out()
        self._go_on(then_ms)

    # ---- workers ----

    @rule(voice=st.sampled_from(OFTEN_ONE), chunks=st.integers(1, 12))
    def work(self, voice: str, chunks: int) -> None:
        self.stage.work(voice, chunks)

    @rule(voice=st.sampled_from(OFTEN_ONE))
    def hear_of_a_worker(self, voice: str) -> None:
        self.stage.deliver_worker(voice)

    @precondition(lambda self: self._loading())
    @rule(data=st.data())
    def load(self, data: st.DataObject) -> None:
        self.stage.ready(data.draw(st.sampled_from(self._loading())))

    def _loading(self) -> list[str]:
        found = self.stage.voices.items()
        return [name for name, voice in found if voice.worker is None and voice.wanted]

    @precondition(lambda self: self._busy())
    @rule(data=st.data(), trouble=st.sampled_from(("kill", "kill", "fail", "break")))
    def trouble_with_a_worker(self, data: st.DataObject, trouble: str) -> None:
        voice = data.draw(st.sampled_from(self._busy()))
        if trouble == "kill":
            self.stage.kill(voice)
        elif trouble == "break":
            self.stage.broken(voice)
        else:
            self.stage.voices[voice].worker.fails = True

    def _busy(self) -> list[str]:
        found = self.stage.voices.items()
        return [name for name, v in found if v.worker and not v.dead and not v.worker.idle]

    # ---- the player ----

    @rule(count=st.integers(1, 5))
    def hear_of_the_player(self, count: int) -> None:
        self.stage.deliver_player(count)

    @rule(ms=st.sampled_from((10, 30, 100, 300)))
    def let_time_pass(self, ms: int) -> None:
        for _ in range(0, ms, 10):
            self.note_estimates()
            self.stage.pass_ms(10)
            self.look()

    @rule(ms=st.sampled_from((50, 200, 600)))
    def all_goes_well(self, ms: int) -> None:
        self._go_on(ms)

    def _go_on(self, ms: int) -> None:
        for _ in range(0, ms, 10):
            self.note_estimates()
            self.stage.run(10)
            self.look()

    @precondition(lambda self: self.sounds and self._plays())
    @rule(trouble=st.sampled_from(("lost", "told", "untold")))
    def trouble_with_the_player(self, trouble: str) -> None:
        if trouble == "lost":
            self.stage.lose_device()
        else:
            self.stage.kill_player(told=trouble == "told")

    @precondition(lambda self: not self._plays())
    @rule()
    def bring_sound_back(self) -> None:
        self.stage.bring_sound_back()

    def _plays(self) -> bool:
        return self.stage.player is not None and self.stage.player.open

    # ---- what must hold ----

    def note_estimates(self) -> None:
        """Utterances that will be given up waiting for now: their place is guessed."""
        cuts = self.stage.scheduler._cutting.cuts
        overdue = cuts.overdue(self.stage.now_ns + 10 * MS)
        self.estimated |= {cuts.settling[g].utterance.order for g in overdue}

    @invariant()
    def look(self) -> None:
        self._look_at_events()
        self._look_at_sound()

    def _look_at_events(self) -> None:
        for event in self.stage.told[self.seen_events :]:
            key = event.client, event.id
            if isinstance(event, events.Accepted):
                assert key not in self.open, f"{key} was accepted twice"
                self.open.add(key)
                continue
            assert key in self.open, f"{event} of what is over or was never accepted"
            match event:
                case events.Started():
                    assert key not in self.started
                    self.started.add(key)
                case events.Paused():
                    assert key in self.started
                    assert key not in self.is_paused
                    assert event.heard_characters >= self.paused_at.get(key, 0)
                    self.is_paused.add(key)
                    self.paused_at[key] = event.heard_characters
                case events.Resumed():
                    assert key in self.is_paused
                    self.is_paused.discard(key)
                case events.Cancelled():
                    assert event.heard_characters >= self.paused_at.get(key, 0)
                case events.Dropped():
                    assert key not in self.started
                case _:
                    pass
            if isinstance(event, events.Terminal):
                self.open.discard(key)
                self.paused_at.pop(key, None)
                self.is_paused.discard(key)
                self.started.discard(key)
        self.seen_events = len(self.stage.told)

    def _look_at_sound(self) -> None:
        stage = self.stage
        silenced = {
            generation: max(when_ns, silent.silent_ns)
            for number, (silent, when_ns) in stage.silent.items()
            for generation in self.tickets.get(number, ())
        }
        begun: set[int] = set()
        for sample in stage.heard[self.seen_heard :]:
            generation = sample.generation
            owner = stage.spoken_by[generation]
            if generation in silenced and owner.order not in self.estimated:
                assert sample.dac_ns <= silenced[generation], "it sounds after the reply"
            if generation not in begun and owner.order not in self.streams:
                begun.add(generation)
                self._look_at_order(generation, owner)
        self.seen_heard = len(stage.heard)

    def _look_at_order(self, generation: int, owner: Utterance) -> None:
        """Nothing of equal priority that the client said before may still have to sound."""
        if owner.state not in LIVING or owner.generation != generation:
            return
        for other in self.accepted:
            if (
                other.order < owner.order
                and (other.client, other.priority) == (owner.client, owner.priority)
                and other.order not in self.streams
                and other.state in LIVING
            ):
                last = [s for s in self.stage.heard if s.generation == other.generation]
                at_end = last and last[-1].character == len(other.text) - 1
                assert at_end or self.stage.player is None, f"{owner.key} overtook {other.key}"

    def teardown(self) -> None:
        """All troubles end: then everything living must end too, and nothing be left."""
        stage = self.stage
        stage.scheduler.resume()
        stage.carry_out()
        for _ in range(600):
            stage.bring_sound_back()
            for name in self._loading():
                stage.ready(name)
            self.note_estimates()
            stage.run(10)
            self.look()
            if not any(stage.tables().values()):
                break
        assert not any(stage.tables().values()), f"left: {stage.tables()}"
        assert set(stage.silent) == set(self.tickets)
        assert not self.open, "no terminal event"
        stage.run(400)
        self.look()
        for utterance in self.accepted:
            assert utterance.state not in LIVING
            self._look_at_text(utterance)

    def _look_at_text(self, utterance: Utterance) -> None:
        """Nothing left out of what ended, no clause said twice to its end."""
        if utterance.order in self.estimated:
            return
        mine = [
            s
            for s in self.stage.heard
            if self.stage.spoken_by[s.generation] is utterance and s.character >= 0
        ]
        if utterance.state.value == "ended":
            assert {s.character for s in mine} == set(range(len(utterance.text)))
        if utterance.command.on_interrupt == "resume":
            counted = Counter(s.character for s in mine)
            text = utterance.text
            for at, character in enumerate(text):
                if character == "。":
                    # A clause that was cut within its last character is said again.
                    assert counted[at] < 2 * CHARACTER, f"clause at {at} of {text!r} twice"


Machine.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestScheduler = Machine.TestCase
