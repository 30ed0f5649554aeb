"""The edges of a segment and its cut into chunks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utterd.engine.voices import shape

RATES = (8_000, 16_000, 22_050, 24_000, 48_000)


def loud_between(before: int, loud: int, behind: int) -> np.ndarray:
    noise = np.random.default_rng(before + loud + behind)
    quiet = lambda n: noise.uniform(-0.003, 0.003, n).astype(np.float32)  # noqa: E731
    tone = np.full(loud, 0.5, np.float32)
    return np.concatenate([quiet(before), tone, quiet(behind)])


@given(st.sampled_from(RATES), st.integers(0, 3000), st.integers(1, 3000), st.integers(0, 3000))
def test_ten_ms_stay_on_both_sides(rate, before, loud, behind):
    trimmed, first = shape.trim(loud_between(before, loud, behind), rate)
    silence = round(0.010 * rate)
    assert len(trimmed) == loud + 2 * silence
    assert first == before - silence
    audible = np.flatnonzero(np.abs(trimmed) > shape.AUDIBLE)
    assert audible[0] == silence
    assert audible[-1] == silence + loud - 1


@given(st.sampled_from(RATES), st.integers(480, 3000), st.integers(480, 3000))
def test_the_edges_are_no_step(rate, before, behind):
    """Where there was silence enough; else zeros stand before what is below -50 dBFS."""
    samples = np.full(before + 100 + behind, 0.003, np.float32)
    samples[before : before + 100] = 0.9
    trimmed, _ = shape.trim(samples, rate)
    assert abs(trimmed[0]) < 1e-5
    assert abs(trimmed[-1]) < 1e-5
    fade = round(0.005 * rate)
    steepest = 0.003 * 0.5 * np.pi / fade
    assert np.abs(np.diff(trimmed[: 2 * fade])).max() <= steepest * 1.01
    assert np.abs(np.diff(trimmed[-2 * fade :])).max() <= steepest * 1.01


def test_what_is_loud_is_left_as_it_is():
    samples = loud_between(1000, 500, 1000)
    trimmed, first = shape.trim(samples, 24_000)
    middle = slice(240, -240)
    np.testing.assert_array_equal(trimmed[middle], samples[first : first + len(trimmed)][middle])


@pytest.mark.parametrize("length", [0, 1, 5000])
def test_silence_becomes_nothing(length):
    trimmed, _ = shape.trim(np.full(length, 0.003, np.float32), 24_000)
    assert len(trimmed) == 0


@given(st.sampled_from(RATES), st.integers(0, 200_000))
def test_chunks_are_the_whole(rate, length):
    samples = np.arange(length, dtype=np.float32)
    cut = list(shape.chunks(samples, rate))
    joined = np.concatenate([*cut, np.zeros(0, np.float32)])
    np.testing.assert_array_equal(joined, samples)
    if length > 2 * rate:
        assert len(cut[0]) == round(0.05 * rate)
        assert max(map(len, cut)) == round(0.4 * rate)
