"""The reference stream: what an echo canceller gets is what the device got, and when."""

import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.audio.rig import Rig, tone
from tests.audio.running import Running, read_wav
from tests.audio.subscriber import PATIENCE, Subscriber
from tests.flood import flooded
from tests.sound_server import SoundServer
from utterd.audio.messages import (
    Alive,
    Anchor,
    Configure,
    DeviceLost,
    Dropped,
    Ended,
    Opened,
    Started,
)
from utterd.audio.reference import WAITING_MESSAGES, Reference

VOICE_RATE = 24_000
FRAME_NS = 1e9 / 48_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reference.sock"


@pytest.fixture
def subscriber(path: Path) -> Iterator[Subscriber]:
    made = Subscriber(path)
    yield made
    made.close()


@pytest.fixture
def running(tmp_path: Path, path: Path) -> Iterator[Running]:
    made = Running(Configure(sink="wav", wav_path=str(tmp_path / "out.wav"), reference=str(path)))
    made.wait(Opened)
    yield made
    made.close()


def noise(frames: int, level: float) -> np.ndarray:
    """Every sample of it is needed to get it right."""
    made = np.random.default_rng(frames).uniform(-level, level, frames)
    return made.astype(np.float32)


def test_it_is_what_the_device_got_over_speech_gain_and_cancel(
    running: Running, subscriber: Subscriber, tmp_path: Path
) -> None:
    subscriber.wait()
    # Above full scale with this gain: the limiter is in it.
    running.ring.gain = 2.0
    running.writer.write(1, 0, noise(12_000, 0.8), VOICE_RATE, last=True)
    running.writer.write(2, 0, noise(48_000, 0.5), VOICE_RATE)
    running.wait(Started, lambda s: s.generation == 2)
    running.ring.gain = 0.3
    running.listen(0.2)
    running.ring.fence = 3
    running.wake()
    running.wait(Dropped)
    running.writer.write(3, 0, tone(12_000, rate=VOICE_RATE), VOICE_RATE, last=True)
    ended = running.wait(Ended, lambda e: e.generation == 3)
    subscriber.wait(lambda h: h.dac_ns > ended.dac_ns)
    subscriber.assert_whole()
    heard = np.trim_zeros(np.rint(subscriber.sound * np.float32(32767)))
    recorded = np.trim_zeros(np.rint(read_wav(tmp_path / "out.wav") * 32767))
    np.testing.assert_array_equal(heard, recorded)
    assert len(heard) > 48_000


def test_its_times_are_those_of_the_events(running: Running, subscriber: Subscriber) -> None:
    subscriber.wait()
    running.writer.write(1, 0, np.full(12_000, 0.25, np.float32), VOICE_RATE, last=True)
    anchor, ended = running.wait(Anchor), running.wait(Ended)
    subscriber.wait(lambda h: h.dac_ns > ended.dac_ns)
    subscriber.assert_whole()
    times = np.concatenate(
        [h.dac_ns + np.arange(h.frames) * 1e9 / h.rate for h in subscriber.headers]
    )
    assert np.all(np.diff(times) > 0)
    loud = np.flatnonzero(subscriber.sound)
    # The ramp begins at nothing, so the first sample of all is one before the first that shows.
    assert abs(times[loud[0]] - anchor.dac_ns) <= 2 * FRAME_NS
    assert abs(times[loud[-1]] - ended.dac_ns) <= 500 * FRAME_NS  # the wave decays behind its end
    slope = np.polyfit(np.arange(len(times)), times, 1)[0]
    assert slope == pytest.approx(FRAME_NS, rel=1e-4)


def test_while_nobody_subscribes_nothing_is_copied(running: Running, path: Path) -> None:
    running.writer.write(1, 0, tone(6000, rate=VOICE_RATE), VOICE_RATE, last=True)
    running.wait(Ended)
    asked = len(running.messages)
    alive = running.wait(Alive, after=asked)
    assert (alive.subscribed, alive.reference_frames, alive.reference_problem) == (False, 0, "")
    subscriber = Subscriber(path)
    subscriber.wait()
    subscriber.close()
    running.wait(Alive, lambda a: a.reference_frames > 0 and not a.subscribed, after=asked)
    copied = [m for m in running.messages if isinstance(m, Alive)][-1].reference_frames
    running.listen(1.2)
    later = running.wait(Alive, after=len(running.messages))
    assert (later.subscribed, later.reference_frames) == (False, copied)


def test_another_topic_is_nobody(running: Running, path: Path) -> None:
    subscriber = Subscriber(path)
    subscriber._socket.unsubscribe(b"reference")
    subscriber._socket.subscribe(b"something else")
    running.listen(0.3)
    asked = len(running.messages)
    alive = running.wait(Alive, after=asked)
    subscriber.close()
    assert not alive.subscribed


def test_silence_is_published_too(running: Running, subscriber: Subscriber) -> None:
    first = subscriber.wait()
    subscriber.wait(lambda h: h.index > first.index + 24_000)
    subscriber.assert_whole()
    assert not subscriber.sound.any()


def test_the_socket_is_for_the_group_and_removed_at_the_end(tmp_path: Path) -> None:
    path, gid = tmp_path / "reference.sock", os.getgid()
    running = Running(Configure(sink="null", reference=str(path), reference_gid=gid))
    running.wait(Opened)
    subscriber = Subscriber(path)
    subscriber.wait()
    found = path.stat()
    assert stat.S_IMODE(found.st_mode) == 0o660
    assert found.st_gid == gid
    running.close()
    assert subscriber.wait(lambda h: not h.frames).closed == "the player ends"
    subscriber.close()
    assert not path.exists()


def test_another_player_takes_over_from_one_that_was_killed(
    running: Running, subscriber: Subscriber, path: Path
) -> None:
    first = subscriber.wait()
    running.writer.write(1, 0, np.full(96_000, 0.25, np.float32), VOICE_RATE)
    running.wait(Started)
    os.kill(running.player.pid, signal.SIGKILL)
    running.wait_gone()
    assert path.exists()
    running.start()
    again = subscriber.wait(lambda h: h.opened_ns != first.opened_ns)
    assert again.opened_ns > first.opened_ns
    assert again.index < first.index + 48_000 * PATIENCE
    at = len(subscriber.headers)
    subscriber.wait(lambda h: h.index > again.index + 4800, after=at)
    assert any(np.abs(piece).max(initial=0) > 0.2 for piece in subscriber.samples[at:])


def test_an_old_player_leaves_the_socket_of_the_next_alone(tmp_path: Path) -> None:
    path = tmp_path / "reference.sock"
    old = Running(Configure(sink="null", reference=str(path)))
    old.wait(Alive, lambda a: path.exists())
    first = path.stat().st_ino
    new = Running(Configure(sink="null", reference=str(path)))
    new.wait(Alive, lambda a: path.exists() and path.stat().st_ino != first)
    old.close()
    assert path.exists()
    new.close()
    assert not path.exists()


def test_where_it_cannot_be_published_sound_goes_on_and_it_is_told(tmp_path: Path) -> None:
    running = Running(Configure(sink="null", reference=str(tmp_path / "nowhere" / "r.sock")))
    running.writer.write(1, 0, tone(6000, rate=VOICE_RATE), VOICE_RATE, last=True)
    running.wait(Ended)
    alive = running.wait(Alive, lambda a: bool(a.reference_problem))
    assert "nowhere" in alive.reference_problem
    running.close()


def test_a_slow_subscriber_loses_messages_and_slows_nobody(tmp_path: Path, path: Path) -> None:
    running = Running(Configure(sink="null", period_ms=2.0, reference=str(path)))
    running.wait(Opened)
    quick, slow = Subscriber(path), Subscriber(path, waiting=1)
    slow.wait()
    until = time.monotonic() + PATIENCE
    while len(quick.headers) < 20 * WAITING_MESSAGES and time.monotonic() < until:
        quick.take(0.1)
    quick.assert_whole()
    assert len(quick.headers) >= 20 * WAITING_MESSAGES
    slow.take(0.5)
    quick.take()
    slow.close()
    quick.close()
    running.close()
    pairs = list(zip(slow.headers, slow.headers[1:], strict=False))
    lost = [(a, b) for a, b in pairs if b.sequence != a.sequence + 1]
    assert lost
    frames = {h.sequence: h.frames for h in quick.headers}
    for before, after in lost:  # what it lost can be told from the headers alone
        between = range(before.sequence + 1, after.sequence)
        assert after.index - before.index - before.frames == sum(frames[s] for s in between)


def test_a_flood_of_subscriptions_stops_no_sound(path: Path) -> None:
    running = Running(Configure(sink="null", reference=str(path)))
    running.wait(Opened)
    Subscriber(path).close()
    with flooded(f"ipc://{path}"):
        running.listen(1.0)
        running.writer.write(1, 0, tone(48_000, rate=VOICE_RATE), VOICE_RATE, last=True)
        ended = running.wait(Ended)
    lost = [m for m in running.messages if isinstance(m, DeviceLost)]
    running.close()
    assert ended.samples == 48_000
    assert not lost


def test_a_queue_that_was_full_is_told_as_a_gap(path: Path) -> None:
    rig = Rig()
    reference = Reference(rig.core, str(path), -1, rig.wake)
    reference.load()
    until = time.monotonic() + PATIENCE
    while reference.bind() < 0:
        assert time.monotonic() < until
        time.sleep(0.01)
    rig.core.configure(48_000, 2, 480, 5.0, 100.0, 10.0, True, 50.0)
    rig.core.start_paced(-1, 0)
    reference.opened("null", 48_000, time.monotonic_ns())
    subscriber = Subscriber(path)
    while not subscriber.headers:
        assert time.monotonic() < until
        reference.publish()
        subscriber.take(0.01)
    while rig.core.frames_dropped < 4800:  # nobody takes what is copied
        assert time.monotonic() < until
        time.sleep(0.01)
    rig.core.stop_paced()
    dropped = rig.core.frames_dropped
    reference.publish()
    rig.core.start_paced(-1, 0)
    while sum(h.gap for h in subscriber.headers) < dropped:
        assert time.monotonic() < until
        reference.publish()
        subscriber.take(0.01)
    rig.core.stop_paced()
    reference.publish()
    subscriber.take(0.2)
    assert sum(h.gap for h in subscriber.headers) == rig.core.frames_dropped
    for before, after in zip(subscriber.headers, subscriber.headers[1:], strict=False):
        assert after.index == before.index + before.frames + after.gap
    reference.close()
    subscriber.close()
    del reference
    rig.close()


def test_a_device_that_was_lost_and_is_back_is_told(sound_server: SoundServer, path: Path) -> None:
    running = Running(Configure(reference=str(path)), sound_server.environment)
    running.wait(Opened)
    subscriber = Subscriber(path)
    first = subscriber.wait()
    sound_server.remove_sink()
    try:
        lost = running.wait(DeviceLost)
        told = subscriber.wait(lambda h: not h.frames)
        assert told.closed == lost.message
        late = Subscriber(path)
        assert late.wait().closed
        late.close()
    finally:
        sound_server.add_sink()
    until = time.monotonic() + PATIENCE
    while subscriber.headers[-1].opened_ns == first.opened_ns:
        if running.gone:
            running.start()
        running.listen(0.05)
        subscriber.take()
        assert time.monotonic() < until
    assert subscriber.headers[-1].closed == ""
    subscriber.close()
    running.close()


def test_against_the_speakers_monitor_it_has_one_constant_lag(
    sound_server: SoundServer, path: Path
) -> None:
    running = Running(Configure(reference=str(path)), sound_server.environment)
    running.wait(Opened)
    subscriber = Subscriber(path)
    subscriber.wait()
    with sound_server.capture() as recorder:
        running.listen(0.2)
        for generation in range(1, 6):
            running.writer.write(generation, 0, noise(6000, 0.3), VOICE_RATE, last=True)
            ended = running.wait(Ended, lambda e, g=generation: e.generation == g)
            running.listen(0.13)
            subscriber.take()
        subscriber.wait(lambda h: h.dac_ns > ended.dac_ns)
    running.close()
    subscriber.close()
    capture, lags = recorder.result, []
    anchors = [m for m in running.messages if isinstance(m, Anchor) and m.position == 0]
    for anchor in anchors:
        piece = around(subscriber, anchor.dac_ns)
        at = capture.frame_at(anchor.dac_ns) - 2400
        heard = capture.samples[at : at + len(piece) + 4800]
        match = np.correlate(heard, piece, "valid")
        best = int(np.argmax(match))
        assert match[best] > 0.9 * float(piece @ piece)
        lags.append((capture.time_ns(at + best) - anchor.dac_ns) / 1e6)
    assert len(lags) == 5
    # A sound server works in quanta (5.3 ms here) and may change its mind by one, no more.
    assert max(lags) - min(lags) < 6.0
    assert abs(float(np.median(lags))) < 30.0


def around(subscriber: Subscriber, ns: int) -> np.ndarray:
    """200 ms of the stream from the sample that sounds at a time."""
    times = [h.dac_ns for h in subscriber.headers]
    at = int(np.searchsorted(times, ns, side="right")) - 1
    skip = round((ns - times[at]) / FRAME_NS)
    return np.concatenate(subscriber.samples[at : at + 22])[skip : skip + 9600]
