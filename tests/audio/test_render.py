"""The states of the sound, sample by sample: what is played, ramped, held back and told."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.audio.rig import PERIOD, RAMP, RATE, Rig, steepest, tone
from utterd.audio.messages import Anchor, Dropped, Ended, Paused, Started, Underrun

NATURAL = steepest(tone(RATE))
"""The largest step inside the tone itself."""
AUDIBLE = 10 ** (-50 / 20)


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.close()


def test_without_samples_there_is_silence(rig: Rig) -> None:
    assert not rig.play(10 * PERIOD).any()
    assert rig.take() == []


def test_every_sample_sounds_once_and_exactly(rig: Rig) -> None:
    wave = tone(5000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    heard = rig.play(6000)
    np.testing.assert_array_equal(heard[:5000], wave)
    assert not heard[5000:].any()
    first_sound = int(np.argmax(np.abs(wave) > AUDIBLE))
    anchor, started, ended = rig.take()
    assert isinstance(anchor, Anchor)
    assert (anchor.generation, anchor.position, rig.frame(anchor.dac_ns)) == (1, 0, 0)
    assert isinstance(started, Started)
    assert rig.frame(started.first_sample_ns) == 0
    assert rig.frame(started.first_sound_ns) == first_sound
    assert isinstance(ended, Ended)
    assert (ended.samples, rig.frame(ended.dac_ns)) == (5000, 4999)
    assert rig.ring.used == 0
    assert rig.ring.played == rig.ring.tail == rig.ring.head


def test_generations_follow_each_other_without_a_gap(rig: Rig) -> None:
    waves = [tone(1000 + 333 * i, 0.1 * (i + 1)) for i in range(4)]
    for generation, wave in enumerate(waves, 1):
        rig.writer.write(generation, 0, wave, RATE, last=True)
    heard = rig.play(8000)
    whole = np.concatenate(waves)
    np.testing.assert_array_equal(heard[: len(whole)], whole)
    events = rig.take()
    assert [type(e).__name__ for e in events] == ["Anchor", "Started", "Ended"] * 4
    ends = [e for e in events if isinstance(e, Ended)]
    assert [e.samples for e in ends] == [len(wave) for wave in waves]
    assert [rig.frame(e.dac_ns) + 1 for e in ends] == np.cumsum([e.samples for e in ends]).tolist()


def test_what_is_too_quiet_to_hear_starts_with_its_end(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(1000, 0.001), RATE, last=True)
    rig.play(2000)
    _, started, ended = rig.take()
    assert isinstance(started, Started)
    assert isinstance(ended, Ended)
    assert rig.frame(started.first_sample_ns) == 0
    assert started.first_sound_ns == ended.dac_ns


def test_an_utterance_without_samples_ends_as_well(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(0 + 1)[:0], RATE, last=True)
    rig.play(1000)
    assert [type(e).__name__ for e in rig.take()] == ["Started", "Ended"]


@pytest.mark.parametrize("how", ["fence", "revoke"])
def test_a_drop_ramps_down_and_nothing_follows(rig: Rig, how: str) -> None:
    wave = tone(48_000)
    rig.writer.write(5, 0, wave, RATE, last=True)
    before = rig.play(10 * PERIOD)
    rig.take()
    if how == "fence":
        rig.ring.fence = 6
    else:
        rig.ring.revoke(5)
    after = rig.play(60_000)
    assert steepest(np.concatenate([before, after])) <= NATURAL * 1.01
    assert np.abs(after[: RAMP // 2]).max() > 0.1
    assert not after[RAMP + 1 :].any()
    (dropped,) = rig.take()
    assert isinstance(dropped, Dropped)
    assert dropped.generation == 5
    assert dropped.samples == pytest.approx(10 * PERIOD + RAMP, abs=2)
    assert rig.frame(dropped.silent_ns) == pytest.approx(10 * PERIOD + RAMP, abs=2)
    assert rig.ring.used == 0


def test_the_next_generation_begins_right_behind_the_ramp(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(48_000), RATE, last=True)
    rig.play(5 * PERIOD)
    wave = tone(3000, 0.25)
    rig.writer.write(2, 0, wave, RATE, last=True)
    rig.ring.fence = 2
    heard = rig.play(5000)
    begin = rig.frame(next(e for e in rig.take() if e.generation == 2).dac_ns) - 5 * PERIOD
    assert begin <= RAMP + 2
    np.testing.assert_array_equal(heard[begin : begin + 3000], wave)


def test_revoking_what_waits_leaves_its_neighbours(rig: Rig) -> None:
    waves = {g: tone(2000, 0.1 * g) for g in (1, 2, 3)}
    for generation, wave in waves.items():
        rig.writer.write(generation, 0, wave, RATE, last=True)
    rig.play(PERIOD)
    rig.ring.revoke(2)
    heard = rig.play(5000)
    rest = np.concatenate([waves[1][PERIOD:], waves[3]])
    np.testing.assert_array_equal(heard[: len(rest)], rest)
    assert not heard[len(rest) :].any()
    dropped = [e for e in rig.take() if isinstance(e, Dropped)]
    assert [(e.generation, e.samples) for e in dropped] == [(2, 0)]


def test_what_has_begun_is_told_in_the_ring(rig: Rig) -> None:
    for generation in (1, 2, 3):
        rig.writer.write(generation, 0, tone(1000), RATE, last=True)
    assert rig.ring.begun == 0
    rig.play(PERIOD)
    assert rig.ring.begun == 1
    rig.ring.revoke(2)
    rig.play(1000)
    assert rig.ring.begun == 3, "what was revoked before it began never does"
    rig.lose()
    assert rig.ring.begun == 3


def test_what_was_cancelled_before_it_came_is_left_out(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(9000), RATE)
    rig.ring.fence = 2
    assert not rig.play(10_000).any()
    (dropped,) = rig.take()
    assert (type(dropped), dropped.generation, dropped.samples) == (Dropped, 1, 0)
    assert rig.ring.used == 0


def test_pause_keeps_every_sample(rig: Rig) -> None:
    wave = tone(20_000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    before = rig.play(5 * PERIOD)
    rig.take()
    rig.ring.paused = True
    pause = rig.play(20 * PERIOD)
    assert steepest(np.concatenate([before, pause])) <= NATURAL * 1.01
    assert not pause[RAMP + 1 :].any()
    (paused,) = rig.take()
    assert isinstance(paused, Paused)
    assert (paused.generation, paused.position) == (1, 5 * PERIOD)
    assert rig.frame(paused.silent_ns) == pytest.approx(5 * PERIOD + RAMP, abs=2)
    rig.ring.paused = False
    after = rig.play(20_000)
    anchor, ended = rig.take()
    assert isinstance(anchor, Anchor)
    assert (anchor.position, rig.frame(anchor.dac_ns)) == (5 * PERIOD, 25 * PERIOD)
    assert steepest(after) <= NATURAL * 1.01
    np.testing.assert_array_equal(
        after[RAMP + 1 : 20_000 - 5 * PERIOD], wave[5 * PERIOD + RAMP + 1 :]
    )
    assert isinstance(ended, Ended)
    assert ended.samples == 20_000


def test_a_pause_taken_back_in_its_ramp_loses_nothing(rig: Rig) -> None:
    wave = tone(20_000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    heard = [rig.period(100)]
    rig.ring.paused = True
    heard.append(rig.period(100))
    rig.ring.paused = False
    heard += [rig.period() for _ in range(45)]
    whole = np.concatenate(heard)
    assert steepest(whole) <= NATURAL * 1.02
    np.testing.assert_array_equal(whole[500:20_000], wave[500:])
    assert not any(isinstance(e, Paused) for e in rig.take())


def test_cancelled_during_a_pause(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(20_000), RATE, last=True)
    rig.play(5 * PERIOD)
    rig.ring.paused = True
    rig.play(5 * PERIOD)
    rig.take()
    wave = tone(2000, 0.2)
    rig.writer.write(2, 0, wave, RATE, last=True)
    rig.ring.fence = 2
    assert not rig.play(5 * PERIOD).any()
    (dropped,) = rig.take()
    assert (type(dropped), dropped.generation) == (Dropped, 1)
    rig.ring.paused = False
    np.testing.assert_array_equal(rig.play(3000)[:2000], wave)


def test_cancelled_in_the_ramp_of_a_pause(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(20_000), RATE, last=True)
    rig.writer.write(2, 0, tone(2000, 0.2), RATE, last=True)
    heard = [rig.period(), rig.period()]
    rig.ring.paused = True
    heard.append(rig.period(100))
    rig.ring.fence = 2
    heard += [rig.period() for _ in range(10)]
    whole = np.concatenate(heard)
    assert steepest(whole) <= NATURAL * 1.02
    assert not whole[2 * PERIOD + RAMP + 2 :].any()
    assert [type(e).__name__ for e in rig.take()][-2:] == ["Dropped", "Paused"]


def test_a_dry_ring_is_an_underrun_with_soft_edges(rig: Rig) -> None:
    wave = tone(20_000)
    rig.writer.write(1, 0, wave[:5100], RATE)
    before = rig.play(8000)
    rig.writer.write(1, 5100, wave[5100:], RATE, last=True)
    after = rig.play(20_000)
    np.testing.assert_array_equal(before[:5100], wave[:5100])
    whole = np.concatenate([before, after])
    assert steepest(whole) <= NATURAL * 1.01
    assert not before[5100 + RAMP + 1 :].any()
    events = rig.take()
    assert [type(e).__name__ for e in events] == [
        "Anchor",
        "Started",
        "Underrun",
        "Anchor",
        "Ended",
    ]
    underrun, anchor = events[2:4]
    assert isinstance(underrun, Underrun)
    assert (underrun.generation, underrun.position, underrun.count) == (1, 5100, 1)
    assert underrun.missing_ms == pytest.approx((len(before) - 5100) / 48)
    assert isinstance(anchor, Anchor)
    assert (anchor.position, rig.frame(anchor.dac_ns)) == (5100, len(before))
    np.testing.assert_array_equal(after[RAMP + 1 : 20_000 - 5100], wave[5100 + RAMP + 1 :])


def test_a_late_mark_of_the_end_is_no_underrun(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(3000), RATE)
    rig.play(10_000)
    rig.writer.write(1, 3000, tone(1)[:0], RATE, last=True)
    rig.play(PERIOD)
    _, _, ended = rig.take()
    assert isinstance(ended, Ended)
    assert (ended.samples, rig.frame(ended.dac_ns)) == (3000, 2999)


def test_a_generation_whose_writer_died_ends_where_the_next_begins(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(3000), RATE)
    rig.writer.write(2, 0, tone(3000), RATE, last=True)
    rig.play(8000)
    ends = [e for e in rig.take() if isinstance(e, Ended)]
    assert [(e.generation, e.samples) for e in ends] == [(1, 3000), (2, 3000)]


@pytest.mark.parametrize("edge", ["start", "end"])
def test_a_wave_cut_at_its_edge_does_not_click(rig: Rig, edge: str) -> None:
    wave = tone(3000)
    cut = wave[30:] if edge == "start" else wave[:2755]
    assert abs(cut[0 if edge == "start" else -1]) > 0.2
    rig.writer.write(1, 0, cut, RATE, last=True)
    heard = np.concatenate([rig.play(5000), np.zeros(1, np.float32)])
    assert steepest(np.concatenate([np.zeros(1, np.float32), heard])) <= NATURAL * 1.05
    np.testing.assert_array_equal(heard[RAMP + 1 : 2700], cut[RAMP + 1 : 2700])


def test_gain_moves_smoothly_and_arrives(rig: Rig) -> None:
    wave = tone(48_000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    before = rig.play(10 * PERIOD)
    rig.ring.gain = 0.25
    after = rig.play(40_000)
    assert steepest(np.concatenate([before, after])) <= NATURAL * 1.05
    np.testing.assert_array_equal(
        after[20_000:30_000], 0.25 * wave[10 * PERIOD + 20_000 : 10 * PERIOD + 30_000]
    )


def test_gain_set_while_silent_holds_from_the_first_sample(rig: Rig) -> None:
    rig.ring.gain = 0.5
    rig.play(PERIOD)
    wave = tone(3000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    np.testing.assert_array_equal(rig.play(3000)[:3000], wave * np.float32(0.5))


@pytest.mark.parametrize("gain", [1.0, 1.5, 2.0, 4.0])
def test_nothing_is_above_full_scale_and_the_wave_keeps_its_form(rig: Rig, gain: float) -> None:
    rig.ring.gain = gain
    rig.play(PERIOD)
    wave = tone(24_000, 1.0)
    rig.writer.write(1, 0, wave, RATE, last=True)
    heard = rig.play(24_000)[:24_000]
    assert np.abs(heard).max() <= 1.0
    steady = slice(12_000, 24_000)
    scale = np.dot(heard[steady], wave[steady]) / np.dot(wave[steady], wave[steady])
    assert 0.85 < scale < 1.02
    rest = heard[steady] - scale * wave[steady]
    assert np.sqrt(np.mean(rest**2)) < 0.02


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_numbers_that_are_no_sound_are_silence(rig: Rig, bad: float) -> None:
    wave = tone(3000)
    wave[1000:1010] = bad
    rig.writer.write(1, 0, wave, RATE, last=True)
    heard = rig.play(4000)
    assert np.isfinite(heard).all()
    assert not heard[1000:1010].any()
    np.testing.assert_array_equal(heard[1010:2990], wave[1010:2990])


def test_a_gain_nobody_can_mean_is_one(rig: Rig) -> None:
    rig.ring.memory[264:272] = b"\xff" * 8
    wave = tone(3000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    np.testing.assert_array_equal(rig.play(3000)[:3000], wave)


def test_a_clock_that_runs_off_is_told(rig: Rig) -> None:
    rig.writer.write(1, 0, tone(48_000), RATE, last=True)
    rig.play(10 * PERIOD)
    rig.take()
    rig.played += 960  # the device lost 20 ms
    rig.play(10 * PERIOD)
    (anchor,) = rig.take()
    assert isinstance(anchor, Anchor)
    assert rig.frame(anchor.dac_ns) - anchor.position == 960


def test_another_device_goes_on_at_the_sample_where_the_last_stopped(rig: Rig) -> None:
    wave = tone(30_000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    rig.play(10 * PERIOD)
    first = rig.period(123)
    assert len(first) == 123
    position = 10 * PERIOD + 123
    rig.take()
    rig.lose()
    assert rig.ring.used > 0
    rig.open(RATE)
    rig.played += 100_000
    heard = rig.play(30_000)
    anchor, ended = rig.take()
    assert isinstance(anchor, Anchor)
    assert anchor.position == position
    begin = rig.frame(anchor.dac_ns) - position - 100_000
    np.testing.assert_array_equal(
        heard[begin + RAMP + 1 : begin + 30_000 - position], wave[position + RAMP + 1 :]
    )
    assert steepest(heard) <= NATURAL * 1.01
    assert isinstance(ended, Ended)
    assert ended.samples == 30_000


def test_cancelled_while_there_is_no_device(rig: Rig) -> None:
    for generation in (1, 2, 3):
        rig.writer.write(generation, 0, tone(9000, 0.1 * generation), RATE, last=True)
    rig.play(5 * PERIOD)
    rig.lose()
    rig.take()
    rig.ring.fence = 3
    rig.feed.reap(77)
    rig._collect()
    dropped = rig.take()
    assert [(type(e), e.generation) for e in dropped] == [(Dropped, 1), (Dropped, 2)]
    assert dropped[0].samples == 5 * PERIOD
    rig.open(RATE)
    np.testing.assert_array_equal(rig.play(9000)[:9000], tone(9000, 0.3))


def test_a_new_player_goes_on_where_the_last_one_stopped() -> None:
    rig = Rig()
    wave = tone(30_000)
    rig.writer.write(1, 0, wave, RATE, last=True)
    rig.play(10 * PERIOD)
    rig.core = type(rig.core)(rig.ring.memory, rig.wake)
    rig.feed = type(rig.feed)(rig.ring, rig.core)
    rig.open(RATE)
    rig.take()
    heard = rig.play(30_000)
    anchor = rig.take()[0]
    assert isinstance(anchor, Anchor)
    assert 10 * PERIOD - 256 <= anchor.position <= 10 * PERIOD
    np.testing.assert_array_equal(
        heard[RAMP + 1 : 30_000 - anchor.position], wave[anchor.position + RAMP + 1 :]
    )
    rig.close()
