"""The scheduler's machine once more, with the real ring, feed and callback between it and the ear.

What `test_scheduler_machine` asks of the scheduler alone is asked of what the device got.
"""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, precondition, rule

from tests.daemon.real_sound import RealStage
from tests.daemon.stage import MS
from tests.daemon.test_scheduler_machine import MAX_WAITING, Machine


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
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestRecorded = Recorded.TestCase
