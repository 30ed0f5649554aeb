"""Sinks that sleep: what goes ahead of the first sound, and what silence is filled with."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.audio.rig import PERIOD, RATE, Rig, tone
from utterd.audio.messages import Anchor, Dropped, Ended, Started

LAST_BIT = np.float32(1 / 32767)
"""Of 16: -90.3 dBFS."""
AUDIBLE = 10 ** (-50 / 20)
WAKE_MS = 95.0
"""Not a whole number of periods."""
WAKE = round(WAKE_MS * RATE / 1000)


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.close()


def assert_noise(samples: np.ndarray) -> None:
    """The last bit, up as often as down, and of no pitch."""
    assert set(np.unique(samples)) == {-LAST_BIT, LAST_BIT}
    signs = np.sign(samples)
    assert abs(float(signs.mean())) < 5 / np.sqrt(len(signs))
    spectrum = np.abs(np.fft.rfft(signs)) ** 2 / len(signs)
    assert spectrum.max() < 25, "a tone stands out of it"
    assert 20 * np.log10(np.sqrt(np.mean(samples**2))) == pytest.approx(-90.3, abs=0.1)


def test_sound_begins_when_the_sink_is_awake_and_is_stamped_so(rig: Rig) -> None:
    rig.lose()
    rig.open(RATE, wake_ms=WAKE_MS, noise=True)
    wave = tone(9600)
    rig.writer.write(1, 0, wave, RATE, last=True)
    heard = rig.play(WAKE + 9600 + 4800)
    assert_noise(heard[:WAKE])
    np.testing.assert_array_equal(heard[WAKE : WAKE + 9600], wave)
    assert_noise(heard[WAKE + 9600 :])
    anchor, started, ended = rig.take()
    assert isinstance(anchor, Anchor)
    assert isinstance(started, Started)
    assert isinstance(ended, Ended)
    assert rig.frame(anchor.dac_ns) == rig.frame(started.first_sample_ns) == WAKE
    first = int(np.argmax(np.abs(heard) > AUDIBLE))
    assert rig.frame(started.first_sound_ns) == first
    assert rig.frame(ended.dac_ns) == WAKE + 9600 - 1


def test_an_open_sink_is_awake(rig: Rig) -> None:
    rig.open(RATE, wake_ms=WAKE_MS, noise=True)
    rig.play(WAKE + RATE)
    begin = rig.played
    rig.writer.write(1, 0, tone(4800), RATE, last=True)
    rig.play(4800)
    assert rig.frame(next(e for e in rig.take() if isinstance(e, Anchor)).dac_ns) == begin


def test_without_noise_waking_is_silence(rig: Rig) -> None:
    rig.open(RATE, wake_ms=WAKE_MS)
    rig.writer.write(1, 0, tone(4800), RATE, last=True)
    assert not rig.play(WAKE - PERIOD)[: WAKE - PERIOD].any()


def test_what_is_cancelled_while_the_sink_wakes_is_told_at_once_and_never_sounds(rig: Rig) -> None:
    rig.open(RATE, wake_ms=WAKE_MS)
    rig.writer.write(1, 0, tone(4800), RATE, last=True)
    rig.writer.write(2, 0, tone(4800, 0.25), RATE, last=True)
    rig.period()
    rig.ring.fence = 2
    rig.period()
    (dropped,) = rig.take()
    assert isinstance(dropped, Dropped)
    assert (dropped.generation, dropped.samples) == (1, 0)
    assert rig.frame(dropped.silent_ns) == PERIOD
    heard = rig.play(WAKE + 9600)
    assert 0.2 < np.abs(heard).max() < 0.3
    assert rig.frame(next(e for e in rig.take() if isinstance(e, Anchor)).dac_ns) == WAKE


def test_a_sentence_that_was_cut_goes_on_when_the_next_sink_is_awake(rig: Rig) -> None:
    wave = tone(24_000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    rig.play(9600)
    rig.lose()
    rig.take()
    rig.open(RATE, wake_ms=WAKE_MS)
    begin = rig.played
    heard = rig.play(WAKE + 14_400)
    assert not heard[:WAKE].any()
    anchor, ended = rig.take()
    assert isinstance(anchor, Anchor)
    assert anchor.position == 9600
    assert rig.frame(anchor.dac_ns) == begin + WAKE
    assert isinstance(ended, Ended)
    assert ended.samples == 24_000
    np.testing.assert_array_equal(heard[WAKE + 240 : WAKE + 14_400], wave[9600 + 240 :])


def test_cut_and_cancelled_while_the_next_sink_wakes(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(24_000), RATE, last=True)
    rig.play(9600)
    rig.lose()
    rig.take()
    rig.open(RATE, wake_ms=WAKE_MS)
    rig.period()
    rig.ring.revoke(1)
    assert not rig.play(WAKE + 4800).any()
    (dropped,) = rig.take()
    assert isinstance(dropped, Dropped)
    assert dropped.samples == 9600


def test_noise_stops_for_sound_and_for_nothing_else(rig: Rig) -> None:
    rig.open(RATE, noise=True)
    quiet = np.zeros(4800, np.float32)
    rig.writer.write(1, 0, np.concatenate([tone(4800), quiet, tone(4800)]), RATE, last=True)
    heard = rig.play(14_400 + 4800)
    assert not heard[4800:9600].any(), "silence inside speech is the voice's own"
    assert_noise(heard[14_400:])
    rig.ring.paused = True
    assert_noise(rig.play(4800))


@pytest.mark.parametrize("wake_ms", [-1.0, float("nan"), 60_001.0])
def test_no_sink_takes_for_ever_to_wake(rig: Rig, wake_ms: float) -> None:
    with pytest.raises(ValueError, match="time to wake"):
        rig.open(RATE, wake_ms=wake_ms)
