"""A sink that has nothing to play is let go and taken again; nothing is lost or told wrong."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tests.audio.rig import RATE, tone
from tests.audio.running import Running, Start, cycle, let_go, read_wav, runs, wait_for_rest
from utterd.audio.messages import (
    Alive,
    Anchor,
    Configure,
    DeviceLost,
    Dropped,
    Ended,
    Expect,
    Opened,
    Paused,
    Released,
    Shutdown,
    Started,
    Underrun,
)

SOON_S = 0.05


def test_it_is_let_go_after_the_time_and_no_thread_plays_on(start: Start) -> None:
    running = start(sink="null", release_after_s=0.5)
    opened = running.wait(Opened)
    released = running.wait(Released)
    assert released.ns - opened.ns >= 0.5e9
    wait_for_rest(running)
    heartbeat = running.ring.heartbeat_ns
    assert released.ns > heartbeat
    for _ in range(2):
        running.wait(Alive, after=len(running.messages))
    assert running.ring.heartbeat_ns == heartbeat
    assert not [m for m in running.messages if isinstance(m, DeviceLost)]


def test_without_a_time_it_is_never_let_go(start: Start) -> None:
    running = start(sink="null")
    running.wait(Opened)
    running.listen(1.0)
    assert not [m for m in running.messages if isinstance(m, Released)]


def test_the_time_begins_with_the_end_of_sound(start: Start) -> None:
    running = start(sink="null", release_after_s=0.3)
    running.wait(Opened)
    running.writer.write(1, 0, tone(RATE), RATE, last=True)
    ended = running.wait(Ended)
    released = running.wait(Released)
    assert released.ns - ended.dac_ns >= 0.3e9
    assert not [m for m in running.messages if isinstance(m, Underrun)]


def test_a_sentence_that_waits_for_its_rest_is_not_let_go(start: Start) -> None:
    running = start(sink="null", release_after_s=SOON_S)
    running.wait(Opened)
    running.writer.write(1, 0, tone(4800), RATE)
    running.wait(Started)
    running.listen(0.8)
    running.writer.write(1, 4800, tone(4800), RATE, last=True)
    ended = running.wait(Ended)
    assert ended.samples == 9600
    released = running.wait(Released)
    assert running.messages.index(released) > running.messages.index(ended)


def test_what_is_written_meanwhile_sounds_whole_and_is_stamped_true(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path), release_after_s=SOON_S)
    running.wait(Opened)
    wave = tone(9600)
    for generation in (1, 2, 3):
        after = let_go(running)
        written = time.monotonic_ns()
        running.writer.write(generation, 0, wave, RATE, last=True)
        opened = running.wait(Opened, after=after)
        anchor = running.wait(Anchor, after=after)
        ended = running.wait(Ended, after=after)
        assert (anchor.generation, anchor.position, ended.samples) == (generation, 0, 9600)
        assert written < opened.ns < ended.dac_ns
        assert written < anchor.dac_ns
        assert ended.dac_ns - anchor.dac_ns == pytest.approx(9599 / RATE * 1e9, abs=1e5)
    sounds = runs(read_wav(path))
    assert len(sounds) == 3
    for sound in sounds:
        np.testing.assert_allclose(sound, wave[1 : 1 + len(sound)], rtol=0, atol=1 / 32767)
        assert len(sound) == pytest.approx(9600, abs=3)
    assert not [m for m in running.messages if isinstance(m, Underrun | DeviceLost)]


def test_it_is_opened_when_sound_is_expected_and_kept_until_it_no_longer_is(start: Start) -> None:
    running = start(sink="null", release_after_s=SOON_S)
    after = let_go(running)
    running.player.send(Expect(sound=True))
    running.wait(Opened, after=after)
    running.listen(0.8)
    assert not [m for m in running.messages[after:] if isinstance(m, Released)]
    running.player.send(Expect(sound=False))
    running.wait(Released, after=after)


def test_what_is_cancelled_while_it_wakes_never_sounds(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path), release_after_s=SOON_S, wake_ms=400.0)
    after = let_go(running)
    running.writer.write(1, 0, tone(4800), RATE, last=True)
    opened = running.wait(Opened, after=after)
    running.ring.fence = 2
    running.wake()
    dropped = running.wait(Dropped)
    assert (dropped.generation, dropped.samples) == (1, 0)
    assert dropped.silent_ns < opened.ns + 0.4e9
    running.writer.write(2, 0, tone(4800, 0.25), RATE, last=True)
    running.wait(Ended, lambda e: e.generation == 2)
    (sound,) = runs(read_wav(path))
    assert 0.2 < np.abs(sound).max() < 0.3


def test_what_is_cancelled_before_it_wakes_is_told_and_wakes_nothing(start: Start) -> None:
    running = start(sink="null", release_after_s=SOON_S)
    after = let_go(running)
    running.ring.revoke(1)
    running.writer.write(1, 0, tone(4800), RATE, last=True)
    running.wake()
    running.listen(0.3)
    assert not [m for m in running.messages[after:] if isinstance(m, Opened | Started)]


def test_a_pause_does_not_get_lost(start: Start) -> None:
    running = start(sink="null", release_after_s=SOON_S)
    after = let_go(running)
    running.ring.paused = True
    running.writer.write(1, 0, tone(4800), RATE, last=True)
    running.wait(Opened, after=after)
    running.wait(Paused)
    running.listen(0.5)
    assert not [m for m in running.messages[after:] if isinstance(m, Started | Released)]
    running.ring.paused = False
    assert running.wait(Ended).samples == 4800


def test_speech_at_the_very_moment_of_the_release(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path), release_after_s=SOON_S)
    running.wait(Opened)
    random = np.random.default_rng(5)
    wave = tone(960)
    let_goes = 0
    for generation in range(1, 41):
        before = len(running.messages)
        until = time.monotonic() + SOON_S + float(random.uniform(-0.01, 0.01))
        while (left := until - time.monotonic()) > 0:
            running.wake()
            running.listen(min(left, 0.002))
        running.writer.write(generation, 0, wave, RATE, last=True)
        ended = running.wait(Ended, lambda e, g=generation: e.generation == g)
        assert ended.samples == 960
        let_goes += sum(isinstance(m, Released) for m in running.messages[before:])
    assert let_goes > 0
    assert [len(sound) for sound in runs(read_wav(path))] == pytest.approx([958] * 40, abs=2)
    told = [m for m in running.messages if isinstance(m, Started)]
    assert [m.generation for m in told] == [*range(1, 41)]
    assert not [m for m in running.messages if isinstance(m, Underrun | DeviceLost | Dropped)]


def test_many_cycles_leave_nothing_behind(start: Start) -> None:
    running = start(sink="null", release_after_s=0.001)
    running.wait(Opened)
    let_go(running)
    counts = [cycle(running, 50) for _ in range(4)]
    descriptors, rss = zip(*counts, strict=True)
    assert len(set(descriptors)) == 1, counts
    assert rss[-1] - rss[0] < 1_000_000, counts


def test_killed_while_it_was_let_go_the_next_one_plays(start: Start) -> None:
    running = start(sink="null", release_after_s=SOON_S)
    let_go(running)
    running.player.kill()
    running.wait_gone()
    running.writer.write(1, 0, tone(4800), RATE, last=True)
    told = len(running.messages)
    running.start()
    assert running.wait(Ended, after=told).samples == 4800
    running.wait(Released, after=told)


@pytest.mark.parametrize("how", ["shutdown", "sigterm", "eof"])
def test_it_ends_as_well_from_there(how: str) -> None:
    running = Running(Configure(sink="null", release_after_s=SOON_S))
    let_go(running)
    if how == "shutdown":
        running.player.send(Shutdown())
    elif how == "sigterm":
        os.kill(running.player.pid, signal.SIGTERM)
    if how != "eof":
        running.wait_gone()
    assert running.close() == 0


def test_a_sink_that_went_away_meanwhile_is_told_when_it_is_needed(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path), release_after_s=SOON_S)
    after = let_go(running)
    path.unlink()
    path.mkdir()
    running.listen(0.5)
    assert not [m for m in running.messages[after:] if isinstance(m, DeviceLost)]
    running.writer.write(1, 0, tone(4800), RATE, last=True)
    lost = running.wait(DeviceLost, after=after)
    assert "directory" in lost.message
    path.rmdir()
    running.wait(Opened, after=after)
    assert running.wait(Ended).samples == 4800
