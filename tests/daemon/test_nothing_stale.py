"""The scheduler's machine once more, with the real ring, feed and callback between it and the ear.

What `test_scheduler_machine` asks of the scheduler alone is asked of what the device got.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, precondition, rule

from tests.daemon.real_sound import RealStage
from tests.daemon.sim_player import MS
from tests.daemon.test_scheduler_machine import MAX_WAITING, Machine
from utterd.daemon import events
from utterd.daemon.protocol import Speak


@pytest.fixture
def stage() -> Iterator[RealStage]:
    made = RealStage.set_up("one")
    yield made
    made.close()


def speak(stage: RealStage, text: str, ttl_ms: int = 0) -> None:
    command = Speak(text=text, id="x", ttl_ms=ttl_ms)
    stage.scheduler.speak(command, "a", ("one", ""), stage.now_ns, stage.now_ns)
    stage.carry_out()


def test_what_was_heard_is_told_of_a_segment_that_was_on_its_way_when_it_was_cut(
    stage: RealStage,
) -> None:
    speak(stage, "一二三四五。")
    stage.work("one", 4)  # all is in the ring, and the daemon has not read a word of it
    stage.pass_ms(40)
    stage.scheduler.cancel(stage.now_ns, "a", "x")
    stage.carry_out()
    stage.pass_ms(10)
    stage.deliver()
    assert stage.last("x") == events.Cancelled(
        client="a", id="x", reason="cancelled", heard_characters=5, played_ms=41.0
    )


def test_what_expired_when_it_had_just_begun_was_heard_in_part(stage: RealStage) -> None:
    speak(stage, "一二三四五。", ttl_ms=30)
    stage.work("one", 4)
    stage.pass_ms(50)  # nobody reads that it sounds
    stage.deliver()
    assert stage.last("x") == events.Cancelled(
        client="a", id="x", reason="expired", heard_characters=4, played_ms=31.0
    )


def test_a_clause_that_was_cut_in_the_pause_behind_it_is_not_said_again(stage: RealStage) -> None:
    speak(stage, "一二。三四。")
    while not stage.heard or stage.heard[-1].position < 29:
        stage.run(10)
    stage.scheduler.pause(stage.now_ns)
    stage.carry_out()
    stage.run(30)
    stage.scheduler.resume()
    stage.carry_out()
    stage.run(400)
    assert stage.text_heard("x") == "一二。三四。"
    assert isinstance(stage.last("x"), events.Ended)


class Recorded(Machine):
    """Every sample that reaches the device is held against what was told."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = RealStage.set_up(
            max_waiting=MAX_WAITING,
            max_characters=200,
            stream_flush_ns=300 * MS,
            stream_end_ns=1000 * MS,
        )

    @precondition(lambda self: self.sounds and self._plays())
    @rule()
    def trouble_with_the_player(self) -> None:
        """The device is lost; a killed player is another process's affair (tests/e2e)."""
        self.stage.lose_device()

    def _look_at_sound(self) -> None:
        fresh = self.stage.heard[self.seen_heard :]
        super()._look_at_sound()
        for sample in fresh:
            last = self.furthest.get(sample.generation, -1)
            # A ramp may repeat or change the sample at an edge, no other.
            assert sample.position >= last, f"{sample} after {last}"
            assert sample.position - last <= 3, f"samples {last} to {sample} are missing"
            self.furthest[sample.generation] = sample.position

    @initialize()
    def listen(self) -> None:
        self.furthest: dict[int, int] = {}

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.stage.close()


Recorded.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestRecorded = Recorded.TestCase
