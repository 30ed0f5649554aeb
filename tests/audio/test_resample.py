"""Resampling in pieces, early pieces included, equals resampling the whole."""

import numpy as np
import pytest
import soxr
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.audio.rig import Rig, tone
from utterd.audio.messages import Anchor, Ended, Started
from utterd.audio.resample import Resampler

RATES = [8000, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000]


def noise(frames: int) -> np.ndarray:
    return np.random.default_rng(frames).normal(0, 0.1, frames).astype(np.float32)


@settings(max_examples=150, deadline=None)
@example(48_000, 8000, [(1, False), (2048, False), (2048, False), (2048, True), (0, False)])
@example(22_050, 32_000, [(993, True), (0, False)])
@given(
    source=st.sampled_from(RATES),
    device=st.sampled_from(RATES),
    pieces=st.lists(st.tuples(st.integers(0, 2048), st.booleans()), min_size=1, max_size=25),
)
def test_pieces_equal_the_whole(source: int, device: int, pieces: list) -> None:
    if source == device:
        device = 32_000
    whole = noise(sum(frames for frames, _ in pieces))
    resampler = Resampler(source, device)
    out = []
    at = 0
    for number, (frames, hurry) in enumerate(pieces, 1):
        out.append(resampler.push(whole[at : at + frames], last=number == len(pieces)))
        if hurry and number < len(pieces):
            out.append(resampler.hurry())
        at += frames
    expected = soxr.resample(whole, source, device, quality="HQ")
    got = np.concatenate(out)
    assert len(got) == len(expected)
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("source", [16_000, 22_050, 24_000, 44_100])
def test_hurry_keeps_back_a_few_milliseconds_only(source: int) -> None:
    resampler = Resampler(source, 48_000)
    frames = source * 30 // 1000
    got = len(resampler.push(noise(frames), last=False)) + len(resampler.hurry())
    assert 30 - got / 48 < 7.5


@pytest.mark.parametrize(
    ("source", "device"), [(24_000, 48_000), (22_050, 48_000), (24_000, 44_100)]
)
def test_what_sounds_is_the_resampled_voice_in_its_right_place(source: int, device: int) -> None:
    rig = Rig(rate=device)
    wave = tone(source, rate=source)
    wave[:200] *= np.linspace(0, 1, 200)
    rig.writer.write(1, 0, wave, source, last=True)
    heard = rig.play(device + 1000)
    expected = soxr.resample(wave, source, device, quality="HQ")
    np.testing.assert_allclose(heard[: len(expected)], expected, rtol=0, atol=1e-6)
    anchor, started, ended = rig.take()
    assert isinstance(anchor, Anchor)
    assert isinstance(started, Started)
    assert isinstance(ended, Ended)
    assert (anchor.position, rig.frame(anchor.dac_ns)) == (0, 0)
    assert (ended.samples, rig.frame(ended.dac_ns) + 1) == (source, device)
    # The filter adds no delay: the waves of both rates lie on each other.
    between = np.interp(np.arange(device) / device, np.arange(source) / source, wave)
    np.testing.assert_allclose(heard[:device], between, rtol=0, atol=5e-3)
    assert rig.ring.used == 0
    rig.close()


def test_a_short_first_piece_sounds_before_the_resampler_is_full() -> None:
    rig = Rig()
    rig.writer.write(1, 0, tone(480, rate=24_000), 24_000)
    heard = rig.period()
    assert np.abs(heard).max() > 0.2
    rig.close()


def test_cancelling_resampled_sound_leaves_nothing() -> None:
    rig = Rig()
    rig.writer.write(1, 0, tone(24_000, rate=24_000), 24_000, last=True)
    rig.play(9000)
    rig.ring.fence = 2
    assert not rig.play(48_000)[242:].any()
    assert rig.ring.used == 0
    rig.close()


def test_pausing_a_resampled_voice_keeps_its_positions() -> None:
    rig = Rig()
    rig.writer.write(1, 0, tone(24_000, rate=24_000), 24_000, last=True)
    rig.play(9600)
    rig.ring.paused = True
    rig.play(4800)
    rig.ring.paused = False
    rig.play(48_000)
    anchors = [e for e in rig.take() if isinstance(e, Anchor)]
    assert [a.position for a in anchors] == [0, 4800]
    assert rig.frame(anchors[1].dac_ns) == 14_400
    rig.close()


def test_another_device_at_another_rate_goes_on_at_the_same_place() -> None:
    rig = Rig()
    rig.writer.write(1, 0, tone(24_000, rate=24_000), 24_000, last=True)
    rig.play(9600)
    rig.take()
    rig.lose()
    rig.played = 0
    rig.open(44_100)
    rig.play(44_100)
    anchor, ended = rig.take()
    assert isinstance(anchor, Anchor)
    assert isinstance(ended, Ended)
    assert anchor.position == 4800
    played = rig.frame(ended.dac_ns) - rig.frame(anchor.dac_ns) + 1
    assert pytest.approx(played, abs=1) == (24_000 - 4800) * 44_100 / 24_000
    rig.close()
