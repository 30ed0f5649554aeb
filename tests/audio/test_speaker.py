"""The player on a real sound server: what its speaker plays is what was written."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
import soxr

from tests.audio.rig import steepest, tone
from tests.audio.running import Running
from tests.sound_server import QUANTUM, Capture, SoundServer
from utterd.audio.messages import (
    Anchor,
    Configure,
    DeviceLost,
    Dropped,
    Ended,
    Opened,
    Paused,
    Started,
)

VOICE_RATE = 24_000
AUDIBLE = 10 ** (-50 / 20)
PERIOD_NS = 10_000_000
SHORTEST_CYCLE = 64


def voice(frames: int, level: float = 0.5) -> np.ndarray:
    """Noise under a smooth envelope: every sample is needed to get it right."""
    noise = np.random.default_rng(frames).normal(0, level / 4, frames)
    edge = np.linspace(0, 1, 200)
    noise[:200] *= edge
    noise[-200:] *= edge[::-1]
    return np.clip(noise, -0.8, 0.8).astype(np.float32)


def smooth(frames: int) -> np.ndarray:
    """A tone without edges, in which any click shows."""
    wave = tone(frames, rate=VOICE_RATE)
    wave[:200] *= np.linspace(0, 1, 200)
    return wave.astype(np.float32)


@pytest.fixture
def running(sound_server: SoundServer) -> Iterator[Running]:
    running = Running(Configure(), sound_server.environment)
    running.wait(Opened)
    yield running
    running.close()


def sound(capture: Capture) -> np.ndarray:
    """From the first to the last sample that is not zero.

    A server on a machine that is busy with other real-time work may leave out a cycle, which is
    then whole and silent. At most two of them are forgiven, and taken out.
    """
    heard = np.trim_zeros(capture.samples)
    loud = np.flatnonzero(heard)
    gaps = [(a + 1, b) for a, b in itertools.pairwise(loud.tolist()) if b - a > SHORTEST_CYCLE]
    assert sum(end - begin for begin, end in gaps) <= 2 * QUANTUM
    for begin, end in reversed(gaps):
        assert (end - begin) % SHORTEST_CYCLE == 0
        heard = np.delete(heard, slice(begin, end))
    return heard


def assert_heard(capture: Capture, expected: np.ndarray) -> None:
    """The capture is `expected`, sample by sample, without a gap, and nothing else."""
    wanted = np.trim_zeros(expected)
    heard = sound(capture)
    assert len(heard) == len(wanted)
    np.testing.assert_allclose(heard, wanted, rtol=0, atol=1e-6)


def test_at_the_voices_own_rate_every_sample_is_exact(sound_server: SoundServer) -> None:
    sound_server.force_rate(VOICE_RATE)
    running = Running(Configure(rate=VOICE_RATE), sound_server.environment)
    try:
        assert running.wait(Opened).rate == VOICE_RATE
        waves = [voice(30_000), voice(12_345, 0.2), voice(20_001)]
        with sound_server.capture() as recorder:
            for generation, wave in enumerate(waves, 1):
                running.writer.write(generation, 0, wave, VOICE_RATE, last=True)
            running.wait(Ended, lambda e: e.generation == 3)
            running.listen(0.2)
        assert recorder.result.rate == VOICE_RATE
        np.testing.assert_array_equal(sound(recorder.result), np.trim_zeros(np.concatenate(waves)))
    finally:
        running.close()
        sound_server.force_rate(0)


def test_at_the_devices_rate_it_is_the_resampled_voice_stamped_when_it_sounds(
    running: Running, sound_server: SoundServer
) -> None:
    waves = [voice(30_000), voice(12_345, 0.2)]
    with sound_server.capture() as recorder:
        for generation, wave in enumerate(waves, 1):
            running.writer.write(generation, 0, wave, VOICE_RATE, last=True)
        ended = running.wait(Ended, lambda e: e.generation == 2)
        running.listen(0.2)
    capture = recorder.result
    whole = [soxr.resample(wave, VOICE_RATE, 48_000, quality="HQ") for wave in waves]
    assert_heard(capture, np.concatenate(whole))
    first = int(np.flatnonzero(np.abs(capture.samples) > AUDIBLE)[0])
    started = running.wait(Started)
    assert abs(capture.time_ns(first) - started.first_sound_ns) < PERIOD_NS
    last = int(np.flatnonzero(capture.samples)[-1])
    assert abs(capture.time_ns(last) - ended.dac_ns) < PERIOD_NS


def test_a_cancelled_voice_is_silent_when_it_was_said_to_be(
    running: Running, sound_server: SoundServer
) -> None:
    wave = smooth(48_000)
    with sound_server.capture() as recorder:
        for generation in range(1, 6):
            running.writer.write(generation, 0, wave, VOICE_RATE, last=True)
            running.wait(Started, lambda s, g=generation: s.generation == g)
            running.listen(0.03 * generation)
            running.ring.fence = generation + 1
            running.wait(Dropped, lambda d, g=generation: d.generation == g)
            running.listen(0.1)
    capture = recorder.result
    assert steepest(capture.samples) < 1.15 * steepest(tone(48_000))
    drops = [m for m in running.messages if isinstance(m, Dropped)]
    starts = [m for m in running.messages if isinstance(m, Started)]
    for dropped, following in zip(drops, [*starts[1:], None], strict=True):
        begin = capture.frame_at(dropped.silent_ns + PERIOD_NS)
        end = capture.frame_at(following.first_sample_ns - PERIOD_NS) if following else None
        silence = capture.samples[begin:end]
        assert len(silence) > 0
        assert not silence.any()


def test_a_pause_at_the_speaker(running: Running, sound_server: SoundServer) -> None:
    wave = smooth(24_000)
    with sound_server.capture() as recorder:
        running.writer.write(1, 0, wave, VOICE_RATE, last=True)
        running.wait(Started)
        running.listen(0.2)
        running.ring.paused = True
        paused = running.wait(Paused)
        running.listen(0.3)
        running.ring.paused = False
        resumed = running.wait(Anchor, lambda a: a.position > 0)
        running.wait(Ended)
        running.listen(0.2)
    capture = recorder.result
    assert steepest(capture.samples) < 1.15 * steepest(tone(48_000))
    begin = capture.frame_at(paused.silent_ns + PERIOD_NS)
    end = capture.frame_at(resumed.dac_ns - PERIOD_NS)
    assert not capture.samples[begin:end].any()
    assert resumed.position == paused.position
    loud = np.flatnonzero(capture.samples)
    assert len(loud) >= 47_500


@pytest.mark.parametrize(("quantum", "period_ms"), [(1024, 5.0), (512, 2.5)])
def test_a_server_with_large_steps_gets_a_larger_buffer(
    sound_server: SoundServer, quantum: int, period_ms: float
) -> None:
    """As PipeWire in virtual machines: our smallest buffer takes no sound, or only half of it."""
    sound_server.force_quantum(quantum)
    running = Running(Configure(period_ms=period_ms), sound_server.environment)
    try:
        running.wait(Opened, lambda o: o.latency_ms > 20)
        wave = voice(12_000)
        with sound_server.capture() as recorder:
            running.writer.write(1, 0, wave, VOICE_RATE, last=True)
            running.wait(Ended)
            running.listen(0.3)
        assert_heard(recorder.result, soxr.resample(wave, VOICE_RATE, 48_000, quality="HQ"))
    finally:
        running.close()
        sound_server.force_quantum(0)


@pytest.mark.parametrize("trouble", ["killed", "stuck", "unplugged"])
def test_a_lost_device_is_told_and_the_sentence_goes_on(
    sound_server: SoundServer, trouble: str
) -> None:
    running = Running(Configure(), sound_server.environment)
    try:
        running.wait(Opened)
        running.writer.write(1, 0, voice(72_000), VOICE_RATE, last=True)
        running.wait(Started)
        running.listen(0.3)
        if trouble == "killed":
            sound_server.kill()
            lose_and_return(running, sound_server.start)
        elif trouble == "stuck":
            with sound_server.suspended():
                lost = running.wait(DeviceLost)
                running.listen(0.6)
            come_back(running, running.messages.index(lost))
        else:
            sound_server.remove_sink()
            lose_and_return(running, sound_server.add_sink)
    finally:
        running.close()


def lose_and_return(running: Running, repair: object) -> None:
    assert callable(repair)
    lost = running.wait(DeviceLost)
    assert lost.message
    running.listen(0.6)
    repair()
    come_back(running, running.messages.index(lost))


def come_back(running: Running, told: int) -> None:
    """It goes on with the sentence."""
    running.wait_until_back(told)
    anchor = running.wait(Anchor, after=told)
    assert 0 < anchor.position < 72_000
    assert running.wait(Ended, after=told).samples == 72_000


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no such thing", "no sound device 'no such thing'; there is "),
        ("e", "means several sound devices: "),
    ],
)
def test_a_name_that_is_no_device_is_told_with_what_there_is(
    sound_server: SoundServer, name: str, says: str
) -> None:
    running = Running(Configure(device=name), sound_server.environment)
    lost = running.wait(DeviceLost)
    assert lost.reason == "missing"
    assert says in lost.message
    assert "pipewire (ALSA" in lost.message
    running.wait(DeviceLost, lambda m: m.retry_ms > lost.retry_ms)
    assert running.close() == 0


def test_a_device_by_a_part_of_its_name(sound_server: SoundServer) -> None:
    running = Running(Configure(device="PipeWire"), sound_server.environment)
    assert running.wait(Opened).device == "pipewire (ALSA)"
    running.close()


def test_a_server_that_comes_later(sound_server: SoundServer) -> None:
    """At boot the player may be there first."""
    sound_server.kill()
    running = Running(Configure(), sound_server.environment)
    try:
        assert running.wait(DeviceLost).reason == "missing"
        running.writer.write(1, 0, voice(4800), VOICE_RATE, last=True)
        sound_server.start()
        running.wait(Opened)
        assert running.wait(Ended).samples == 4800
    finally:
        running.close()


def test_a_machine_that_is_late_again_and_again_gets_a_larger_buffer(
    sound_server: SoundServer,
) -> None:
    running = Running(Configure(), sound_server.environment)
    try:
        opened = running.wait(Opened)
        running.writer.write(1, 0, voice(96_000), VOICE_RATE, last=True)
        running.wait(Started)
        for _ in range(3):  # not so often that the device seems to be slow
            hold_up(running.player.pid, 0.03)
            running.listen(1.0)
        assert not [m for m in running.messages if isinstance(m, DeviceLost)]
        running.wait(Ended)
        lost = running.wait(DeviceLost)
        assert "late for a buffer" in lost.message
        again = running.wait(Opened, after=running.messages.index(lost))
        assert again.latency_ms > opened.latency_ms
    finally:
        running.close()


URGENT = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[2])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    pass
"""
"""More urgent than the callback (20), less than the sound server's client (88)."""


def hold_up(pid: int, seconds: float) -> None:
    """Keep the callback's thread from its processor for a while: something is more urgent there."""
    thread = next(
        thread.id
        for thread in psutil.Process(pid).threads()
        if os.sched_getscheduler(thread.id) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
        and os.sched_getparam(thread.id).sched_priority == 20
    )
    everywhere = os.sched_getaffinity(thread)
    core = min(everywhere)
    os.sched_setaffinity(thread, {core})
    try:
        subprocess.run([sys.executable, "-c", URGENT, str(seconds), str(core)], check=True)
    finally:
        os.sched_setaffinity(thread, everywhere)
