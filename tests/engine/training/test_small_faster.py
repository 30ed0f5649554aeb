"""Laying windows of the sound closer keeps its pitch, its level and its independence of chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utterd.engine.voices import small_frames
from utterd.engine.voices.small_faster import Faster, needed
from utterd.engine.voices.small_frames import HOP, SAMPLE_RATE

FRAMES = 160


class Tone:
    """A stand-in for the decoder: it sounds just as its source says, and tells when it was used."""

    def __init__(self, frames: small_frames.Frames, amplitude: np.ndarray | float = 0.2) -> None:
        self.done = 0
        self.total = len(frames.phoneme)
        at = np.arange(self.total * HOP) + 0.5
        middles = (np.arange(self.total) + 0.5) * HOP
        phase = np.interp(at, middles, np.cumsum(frames.source[:, 1], dtype=np.float64))
        waves = [np.cos(2 * np.pi * n * phase) / n for n in (1, 2, 3)]
        self.samples = (amplitude * np.sum(waves, 0)).astype(np.float32)

    def take(self, blocks: int) -> np.ndarray:
        first, self.done = self.done, min(self.done + blocks, self.total)
        return self.samples[first * HOP : self.done * HOP]


def voiced(f0: np.ndarray | float) -> small_frames.Frames:
    tones = np.broadcast_to(np.asarray(f0, float), FRAMES)
    return small_frames.frames(np.array([FRAMES]), tones, np.full(FRAMES, 5.0))


@pytest.mark.parametrize("factor", [1.02, 1.3, 2.0, 2.7])
@pytest.mark.parametrize("f0", [85.0, 203.0, 390.0])
def test_a_steady_tone_stays_the_same_tone(factor: float, f0: float) -> None:
    frames = voiced(f0)
    faster = Faster(Tone(frames), frames, factor)
    samples = faster.take(FRAMES)
    assert len(samples) == faster.total * HOP == pytest.approx(FRAMES * HOP / factor, abs=HOP)
    middle = samples[HOP : -3 * HOP].astype(np.float64)
    at = np.arange(len(middle)) / SAMPLE_RATE
    waves = [f(2 * np.pi * n * f0 * at) for n in (1, 2, 3) for f in (np.cos, np.sin)]
    basis = np.stack(waves, 1)
    rest = middle - basis @ np.linalg.lstsq(basis, middle, rcond=None)[0]
    # Half a sample of rounding at each window is all that may be wrong with it.
    assert np.sqrt(np.mean(rest**2)) < 0.05 * np.sqrt(np.mean(middle**2))
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(
        np.sqrt(np.mean(Tone(frames).samples ** 2)), rel=0.05
    )


def test_without_the_steps_in_phase_it_would_not() -> None:
    """What the test above hears: windows taken at even distances beat against each other."""
    silent = voiced(203.0)
    silent.source[:, 3] = 0  # nothing counts as voiced, so no window is moved
    samples = Faster(Tone(silent), silent, 1.3).take(FRAMES)[HOP : -3 * HOP]
    assert np.sqrt(np.mean(samples**2)) < 0.9 * np.sqrt(np.mean(Tone(silent).samples ** 2))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    plan=st.lists(st.integers(1, 60), min_size=1, max_size=20),
    factor=st.floats(1.01, 3),
    seed=st.integers(0, 9),
)
def test_every_chunk_plan_gives_the_whole(plan: list[int], factor: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    f0 = 180 + 90 * np.sin(np.arange(FRAMES) / 9 + seed)
    f0[rng.integers(0, FRAMES, 40)] = 9
    frames = voiced(f0)
    whole = Faster(Tone(frames), frames, factor).take(FRAMES)
    faster = Faster(Tone(frames), frames, factor)
    chunks = [faster.take(size) for size in [*plan, FRAMES]]
    assert faster.done == faster.total
    np.testing.assert_array_equal(np.concatenate(chunks), whole)


@pytest.mark.parametrize("factor", [1.05, 1.8, 2.73])
def test_it_hangs_on_no_more_than_it_says(factor: float) -> None:
    f0 = np.full(FRAMES, 41.0)
    frames = voiced(f0)
    for blocks in (1, 6, 20):
        tone = Tone(frames)
        Faster(tone, frames, factor).take(blocks)
        assert tone.done <= needed(blocks, factor)


def test_what_happens_at_a_moment_is_heard_at_its_place() -> None:
    at = 100 * HOP
    amplitude = np.where(np.arange(FRAMES * HOP) < at, 0.0, 0.2)
    frames = voiced(200.0)
    faster = Faster(Tone(frames, amplitude), frames, 2.5)
    begins = int(np.flatnonzero(np.abs(faster.take(FRAMES)) > 0.05)[0])
    assert begins == pytest.approx(int(faster.places(np.array([100]))[0]), abs=HOP)
