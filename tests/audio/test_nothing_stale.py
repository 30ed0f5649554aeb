"""Whatever is written, cancelled, paused and lost, in any order: nothing stale ever sounds.

Every sample says which one it is. What the events tell is held against what the device got: a
sample that no event accounts for, or of a generation cancelled longer ago than the ramp, shows.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audio.rig import PERIOD, RAMP, RATE, Rig
from utterd.audio.messages import Anchor, Dropped, Ended, FromPlayer, Paused, Underrun


def code(generation: int, position: int, count: int) -> np.ndarray:
    """Samples that tell which they are, 0.1 to 0.4."""
    index = np.arange(position, position + count, dtype=np.int64)
    return (0.1 + (generation * 4099 + index * 7919) % 19_661 / 65_536).astype(np.float32)


@dataclass
class Stretch:
    """A run of samples that the events say sounded."""

    generation: int
    position: int
    begin: int
    end: int
    ramped_end: bool


class Listener:
    """Plays the daemon, the engine and the device, and judges at the end."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.generation = 1
        self.position = 0
        self.device = True
        self.lost_at: list[int] = []
        self.ramps_at: list[int] = []
        self.heard: list[np.ndarray] = []
        self.cancelled_at: dict[int, int] = {}
        self.written: dict[int, int] = {}
        self.whole: set[int] = set()

    def write(self, count: int, last: bool) -> None:
        samples = code(self.generation, self.position, count)
        if not self.rig.writer.write(self.generation, self.position, samples, RATE, last=last):
            self.next_generation()
            return
        if count or last:
            self.written[self.generation] = self.position + count
        self.position += count
        if last:
            self.whole.add(self.generation)
            self.next_generation()

    def next_generation(self) -> None:
        self.generation += 1
        self.position = 0

    def fence(self, ago: int) -> None:
        fence = max(self.rig.ring.fence, self.generation + 1 - ago)
        self.rig.ring.fence = fence
        for generation in range(1, fence):
            self.cancelled_at.setdefault(generation, self.rig.played)

    def revoke(self, ago: int) -> None:
        generation = max(1, self.generation - ago)
        self.rig.ring.revoke(generation)
        self.cancelled_at.setdefault(generation, self.rig.played)

    def pause(self, paused: bool) -> None:
        self.rig.ring.paused = paused
        self.ramps_at.append(self.rig.played)

    def play(self, frames: int) -> None:
        if self.device:
            self.heard.append(self.rig.period(frames))
        else:
            self.rig.feed.reap(self.rig.now_ns)
            self.rig._collect()

    def plug(self, device: bool) -> None:
        if device and not self.device:
            self.rig.open(RATE)
        elif self.device and not device:
            self.rig.lose()
            self.lost_at.append(self.rig.played)
        self.device = device

    def finish(self) -> None:
        self.write(10, last=True)
        self.pause(False)
        self.plug(True)
        self.play(PERIOD)
        while self.rig.ring.used:
            self.play(PERIOD)
        self.play(2 * PERIOD)
        self.judge(np.concatenate(self.heard), self.rig.events)
        self.rig.close()

    def judge(self, heard: np.ndarray, events: list[FromPlayer]) -> None:
        explained = np.zeros(len(heard), bool)
        steady = np.ones(len(heard), bool)
        for frame in self.ramps_at:  # a pause taken back within its ramp is no event
            steady[frame : frame + RAMP + 2] = False
        for stretch in self.stretches(events, len(heard)):
            assert stretch.end <= len(heard)
            expected = code(
                stretch.generation, stretch.position, max(0, stretch.end - stretch.begin)
            )
            got = heard[stretch.begin : stretch.end]
            sure = steady[stretch.begin : stretch.end].copy()
            sure[: RAMP + 1] = False
            if stretch.ramped_end:
                sure[-RAMP - 2 :] = False
            np.testing.assert_array_equal(got[sure], expected[sure])
            assert np.abs(got).max(initial=0) <= 0.9
            cancelled = self.cancelled_at.get(stretch.generation)
            assert cancelled is None or stretch.end <= cancelled + RAMP + 2
            explained[stretch.begin : stretch.end + RAMP + 2] = True
        assert not heard[~explained].any()
        self.judge_ends(events)

    def stretches(self, events: list[FromPlayer], total: int) -> list[Stretch]:
        found: list[Stretch] = []
        open_: Anchor | None = None

        def end_at(frame: int, ramped: bool) -> None:
            nonlocal open_
            if open_ is not None:
                begin = self.rig.frame(open_.dac_ns)
                frame = min([frame, *(lost for lost in self.lost_at if lost > begin)])
                found.append(Stretch(open_.generation, open_.position, begin, frame, ramped))
            open_ = None

        for event in events:
            match event:
                case Anchor():
                    end_at(self.rig.frame(event.dac_ns), ramped=True)  # the device was lost
                    open_ = event
                case Ended():
                    end_at(self.rig.frame(event.dac_ns) + 1, ramped=False)
                case Dropped() if open_ is None or event.generation == open_.generation:
                    frame = self.rig.frame(event.silent_ns)
                    if open_ is not None:  # the ring may have been dry before
                        length = event.samples - open_.position
                        frame = min(frame, self.rig.frame(open_.dac_ns) + length)
                    end_at(frame, ramped=True)
                case Paused():
                    end_at(self.rig.frame(event.silent_ns), ramped=True)
                case Underrun() if open_ is not None:
                    length = event.position - open_.position
                    end_at(self.rig.frame(open_.dac_ns) + length, ramped=False)
        end_at(total, ramped=True)
        return found

    def judge_ends(self, events: list[FromPlayer]) -> None:
        ends = [e for e in events if isinstance(e, Ended | Dropped)]
        assert sorted(e.generation for e in ends) == sorted(self.written)
        assert [e.generation for e in ends] == sorted(e.generation for e in ends)
        for end in ends:
            if isinstance(end, Ended):
                assert end.generation in self.whole
                assert end.samples == self.written[end.generation]
            else:
                assert end.generation in self.cancelled_at
                assert end.samples <= self.written[end.generation]


frames = st.sampled_from([1, 64, 100, PERIOD, PERIOD, PERIOD, 700])
step = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 6000), st.booleans()),
    st.tuples(st.just("play"), frames),
    st.tuples(st.just("play"), frames),
    st.tuples(st.just("fence"), st.integers(0, 2)),
    st.tuples(st.just("revoke"), st.integers(0, 2)),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("plug"), st.booleans()),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(step, max_size=60))
def test_nothing_stale_ever_sounds(steps: list[tuple]) -> None:
    listener = Listener()
    for name, *arguments in steps:
        getattr(listener, name)(*arguments)
    listener.finish()
