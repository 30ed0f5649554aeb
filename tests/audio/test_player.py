"""The player process, with sinks that need no sound server."""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.audio.rig import RAMP, RATE, steepest, tone
from tests.audio.running import PATIENCE, Running, Start, read_wav, runs
from utterd.audio.messages import (
    Alive,
    Anchor,
    Configure,
    DeviceLost,
    Dropped,
    Ended,
    Expect,
    FromPlayer,
    Opened,
    Paused,
    Released,
    Shutdown,
    Started,
    ToPlayer,
    Underrun,
)
from utterd.audio.player import TRANSITIONS, Happening, State
from utterd.audio.ring import Ring


def assert_sounds_like(heard: np.ndarray, wave: np.ndarray) -> None:
    """Equal but for the rounding to 16 bits, where the wave is not cut to silence."""
    np.testing.assert_allclose(heard, wave, rtol=0, atol=1 / 32767)


def test_a_wav_file_holds_what_was_written(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path), speed=20.0)
    opened = running.wait(Opened)
    assert (opened.rate, opened.channels, opened.period_frames) == (RATE, 2, 240)
    assert str(path) in opened.device
    wave = tone(30_000)
    with running.held():
        running.writer.write(1, 0, wave, RATE, last=True)
        running.writer.write(2, 0, wave[:12_345] / 2, RATE, last=True)
    ended = running.wait(Ended, lambda e: e.generation == 2)
    assert ended.samples == 12_345
    heard = read_wav(path)
    begin = int(np.argmax(np.abs(heard) > 0)) - 1
    assert_sounds_like(heard[begin : begin + 30_000], wave)
    assert_sounds_like(heard[begin + 30_000 : begin + 42_345], wave[:12_345] / 2)


def test_the_null_sink_keeps_real_time(start: Start) -> None:
    running = start(sink="null")
    running.wait(Opened)
    running.writer.write(1, 0, tone(24_000), RATE, last=True)
    before = time.monotonic()
    ended = running.wait(Ended)
    anchor = running.wait(Anchor)
    assert time.monotonic() - before > 0.4
    assert ended.dac_ns - anchor.dac_ns == pytest.approx(23_999 / RATE * 1e9, abs=1e5)
    assert abs(anchor.dac_ns - time.monotonic_ns()) < 10 * 1e9


def test_stages_are_told_in_order(start: Start) -> None:
    running = start(sink="null", speed=10.0)
    running.wait(Opened)
    with running.held():
        for generation in (1, 2, 3):
            running.writer.write(generation, 0, tone(9600, rate=24_000), 24_000, last=True)
    running.wait(Ended, lambda e: e.generation == 3)
    told = [m for m in running.messages if isinstance(m, Anchor | Started | Ended)]
    assert [(type(m), m.generation) for m in told] == [
        (kind, generation) for generation in (1, 2, 3) for kind in (Anchor, Started, Ended)
    ]
    running.wait(Alive, lambda a: a.rss_bytes > 1e6)


@pytest.mark.parametrize("how", ["fence", "revoke"])
def test_a_drop_is_silence_after_the_ramp(start: Start, tmp_path: Path, how: str) -> None:
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path))
    running.wait(Opened)
    running.writer.write(1, 0, tone(96_000), RATE, last=True)
    running.wait(Started)
    if how == "fence":
        running.ring.fence = 2
    else:
        running.ring.revoke(1)
    dropped = running.wait(Dropped)
    anchor = running.wait(Anchor)
    running.writer.write(2, 0, tone(4800, 0.25), RATE, last=True)
    running.wait(Ended, lambda e: e.generation == 2)
    first, second = runs(read_wav(path))
    assert len(first) == pytest.approx(dropped.samples, abs=6)
    told = (dropped.silent_ns - anchor.dac_ns) * RATE / 1e9
    assert len(first) == pytest.approx(told, abs=6)
    assert np.abs(first[: -RAMP - 1]).max() > 0.4
    assert steepest(np.append(first, 0)) < 1.15 * steepest(tone(RATE))
    assert len(second) == pytest.approx(4800, abs=3)


def test_pause_and_resume(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path))
    running.wait(Opened)
    wave = tone(48_000)
    running.writer.write(1, 0, wave, RATE, last=True)
    running.wait(Started)
    running.ring.paused = True
    paused = running.wait(Paused)
    used = running.ring.used
    running.listen(0.1)
    assert running.ring.used == used
    running.ring.paused = False
    anchor = running.wait(Anchor, lambda a: a.position > 0)
    assert anchor.position == paused.position
    assert running.wait(Ended).samples == 48_000
    first, second = runs(read_wav(path))
    assert len(first) == pytest.approx(paused.position + RAMP, abs=6)
    assert len(second) == pytest.approx(48_000 - paused.position, abs=3)
    assert_sounds_like(second[-20_000:], wave[-20_001:-1])


def test_an_underrun_is_counted_and_measured(start: Start) -> None:
    running = start(sink="null")
    running.wait(Opened)
    wave = tone(48_000)
    running.writer.write(1, 0, wave[:9600], RATE)
    running.wait(Started)
    while running.ring.used:
        time.sleep(0.01)
    time.sleep(0.1)
    running.writer.write(1, 9600, wave[9600:14_400], RATE, last=True)
    underrun = running.wait(Underrun)
    assert (underrun.generation, underrun.position, underrun.count) == (1, 9600, 1)
    assert underrun.missing_ms >= 80
    first, second = [m for m in running.messages if isinstance(m, Anchor)][:2] or [None, None]
    assert first is not None
    assert second is not None
    gap_ms = (second.dac_ns - first.dac_ns) / 1e6 - 200
    assert gap_ms == pytest.approx(underrun.missing_ms, abs=1)
    running.wait(Alive, lambda a: a.underruns == 1)


@pytest.mark.parametrize("how", ["shutdown", "sigterm", "eof"])
def test_every_end_fades_and_exits_with_0(tmp_path: Path, how: str) -> None:
    path = tmp_path / "out.wav"
    running = Running(Configure(sink="wav", wav_path=str(path)))
    running.wait(Opened)
    running.writer.write(1, 0, tone(96_000), RATE, last=True)
    running.wait(Started)
    if how == "shutdown":
        running.player.send(Shutdown())
    elif how == "sigterm":
        os.kill(running.player.pid, signal.SIGTERM)
    if how != "eof":
        running.wait_gone()
        assert isinstance(running.messages[-1], Paused)
    assert running.close() == 0
    (sound,) = runs(read_wav(path))
    assert steepest(np.append(sound, 0)) < 1.15 * steepest(tone(RATE))


def test_ctrl_c_is_left_to_the_daemon(start: Start) -> None:
    running = start(sink="null")
    running.wait(Opened)
    os.kill(running.player.pid, signal.SIGINT)
    running.writer.write(1, 0, tone(960), RATE, last=True)
    running.wait(Ended)


def test_it_ends_with_a_daemon_that_never_said_anything() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ring, wake = Ring.create(), os.eventfd(0)
    player = start_player_by_hand(theirs.fileno(), ring.fd, wake)
    theirs.close()
    ours.close()
    player.communicate(timeout=PATIENCE)
    assert player.returncode == 0
    ring.close()
    os.close(wake)


def test_without_a_ring_it_says_who_starts_it() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wake = os.eventfd(0)
    player = start_player_by_hand(theirs.fileno(), wake, wake)
    _, errors = player.communicate(timeout=PATIENCE)
    assert player.returncode == 2
    assert errors.decode().count("\n") == 1
    assert "only the daemon can start it" in errors.decode()
    ours.close()
    theirs.close()
    os.close(wake)


def start_player_by_hand(control: int, ring: int, wake: int) -> subprocess.Popen[bytes]:
    numbers = {"--control-fd": control, "--ring-fd": ring, "--wake-fd": wake}
    return subprocess.Popen(
        [sys.executable, "-m", "utterd.audio.main", *(str(x) for p in numbers.items() for x in p)],
        pass_fds=set(numbers.values()),
        stderr=subprocess.PIPE,
    )


def test_killed_in_mid_sentence_a_new_one_goes_on_and_the_file_reads_well(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    running = Running(Configure(sink="wav", wav_path=str(path)))
    running.wait(Opened)
    wave = tone(48_000)
    running.writer.write(1, 0, wave, RATE, last=True)
    running.wait(Started)
    running.listen(0.2)
    running.player.kill()
    running.wait_gone()
    before = len(read_wav(path))
    assert before > 0
    told = len(running.messages)
    running.start()
    anchor = running.wait(Anchor, after=told)
    assert anchor.position > 0
    assert running.wait(Ended, after=told).samples == 48_000
    running.close()
    heard = read_wav(path)
    assert len(heard) > before
    rest = runs(heard[before:])[0]
    assert_sounds_like(rest[-20_000:], wave[-20_001:-1])
    # Nothing is left out; what was not written to the file yet may be heard twice.
    assert anchor.position <= before


def test_a_wav_file_is_continued(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    for _ in range(2):
        running = Running(Configure(sink="wav", wav_path=str(path), speed=20.0))
        running.wait(Opened)
        running.writer.write(1, 0, tone(4800), RATE, last=True)
        running.wait(Ended)
        running.close()
    assert [len(run) for run in runs(read_wav(path))] == pytest.approx([4800, 4800], abs=3)


def test_months_of_silence_are_not_recorded(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path), speed=50.0)
    running.wait(Opened)
    running.listen(0.2)
    with running.held():
        running.writer.write(1, 0, tone(4800), RATE, last=True)
    running.wait(Ended)
    running.listen(0.2)
    assert 4800 <= len(read_wav(path)) <= 4800 + 0.5 * RATE + 960


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("a letter to my mother"), "remove it or name another"),
        (lambda path: path.mkdir(), "directory"),
        (lambda path: path.symlink_to("nowhere/out.wav"), "No such file or directory"),
    ],
)
def test_a_wav_file_that_cannot_be_is_told_and_tried_again(
    start: Start, tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    path = tmp_path / "out.wav"
    make(path)
    running = start(sink="wav", wav_path=str(path))
    lost = running.wait(DeviceLost)
    assert lost.reason == "failed"
    assert says in lost.message
    assert "\n" not in lost.message
    again = running.wait(DeviceLost, lambda m: m.retry_ms > lost.retry_ms)
    assert again.retry_ms == 2 * lost.retry_ms


def test_a_disk_that_fills_up_is_told_and_sound_goes_on_when_there_is_room(
    start: Start, tmp_path: Path
) -> None:
    running = start(sink="wav", wav_path=str(tmp_path / "out.wav"), speed=5.0)
    running.wait(Opened)
    no_more = resource.RLIM_INFINITY
    resource.prlimit(running.player.pid, resource.RLIMIT_FSIZE, (50_000, no_more))
    with running.held():
        running.writer.write(1, 0, tone(48_000), RATE, last=True)
    lost = running.wait(DeviceLost)
    assert lost.reason == "failed"
    assert "File too large" in lost.message
    resource.prlimit(running.player.pid, resource.RLIMIT_FSIZE, (no_more, no_more))
    running.wait(Opened, after=running.messages.index(lost))
    assert running.wait(Ended).samples == 48_000


def test_nothing_is_consumed_without_a_sink_and_all_sounds_once_it_is_there(
    start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "not yet"
    running = start(sink="wav", wav_path=str(folder / "out.wav"), speed=20.0)
    running.wait(DeviceLost)
    with running.held():
        running.writer.write(1, 0, tone(4800), RATE, last=True)
        running.writer.write(2, 0, tone(9600), RATE, last=True)
        running.writer.write(3, 0, tone(14_400), RATE, last=True)
    used = running.ring.used
    running.ring.revoke(1)
    running.wake()
    assert running.wait(Dropped).generation == 1
    assert 0 < running.ring.used < used
    folder.mkdir()
    running.wait(Ended, lambda e: e.generation == 3)
    (sound,) = runs(read_wav(folder / "out.wav"))
    assert len(sound) == pytest.approx(24_000, abs=3)


def test_a_damaged_record_costs_only_what_stands_before_it(start: Start) -> None:
    running = start(sink="null", speed=10.0)
    running.wait(Opened)
    running.ring.paused = True
    running.wait(Paused)
    running.ring.memory[4096:4100] = b"oops"
    head = running.ring.head
    running.ring.memory[64:72] = (head + 128).to_bytes(8, "little")
    running.wake()
    running.listen(0.1)
    with running.held():
        running.writer.write(1, 0, tone(4800), RATE, last=True)
    running.ring.paused = False
    assert running.wait(Ended).samples == 4800


def test_a_daemon_that_does_not_listen_stops_no_sound(start: Start) -> None:
    running = start(sink="null", speed=50.0)
    running.wait(Opened)
    for generation in range(1, 400):
        running.writer.write(generation, 0, tone(480), RATE, last=True)
    while running.ring.used:
        time.sleep(0.01)
    running.wait(Ended, lambda e: e.generation == 399)
    assert [m.generation for m in running.messages if isinstance(m, Ended)] == [*range(1, 400)]


def test_writing_and_cancelling_at_random_from_outside(start: Start, tmp_path: Path) -> None:
    """The same as the property on the rig, with real threads and processes at high speed."""
    path = tmp_path / "out.wav"
    running = start(sink="wav", wav_path=str(path), speed=10.0)
    running.wait(Opened)
    random = np.random.default_rng(7)
    lengths = random.integers(1000, 40_000, 150)

    def write() -> None:
        for generation, length in enumerate(lengths, 1):
            running.writer.write(generation, 0, tone(int(length)), RATE, last=True)

    thread = threading.Thread(target=write)
    thread.start()
    cancelled: set[int] = set()
    while thread.is_alive() or running.ring.used:
        ended = [m.generation for m in running.messages if isinstance(m, Ended | Dropped)]
        sounding = max(ended, default=0) + 1
        action = random.integers(0, 4)
        if action == 0:
            running.ring.revoke(sounding)
            cancelled.add(sounding)
        elif action == 1:
            running.ring.fence = max(running.ring.fence, sounding + 1)
            cancelled |= set(range(1, sounding + 1))
        elif action == 2:
            running.ring.paused = not running.ring.paused
        running.wake()
        running.listen(float(random.uniform(0, 0.02)))
        running.ring.paused = running.ring.paused and bool(thread.is_alive())
    thread.join()
    running.ring.paused = False
    running.wait(Ended | Dropped, lambda m: m.generation == len(lengths))
    ends = [m for m in running.messages if isinstance(m, Ended | Dropped)]
    assert len({m.generation for m in ends}) == len(ends)
    for end in ends:
        if isinstance(end, Ended):
            assert end.samples == lengths[end.generation - 1]
        else:
            assert end.generation in cancelled
    assert steepest(read_wav(path)) < 1.15 * steepest(tone(RATE))


def test_what_had_not_begun_when_it_was_revoked_never_sounds(start: Start) -> None:
    """The next in line is revoked at whatever moment, and looked up afterwards."""
    running = start(sink="null", speed=50.0)
    running.wait(Opened)
    enough = threading.Event()
    generations: list[int] = []

    def write() -> None:
        while not enough.is_set():
            generations.append(len(generations) + 1)
            running.writer.write(generations[-1], 0, tone(480), RATE, last=True)

    thread = threading.Thread(target=write)
    thread.start()
    certain: set[int] = set()
    until = time.monotonic() + PATIENCE
    while len(certain) < 100 and time.monotonic() < until:
        generation = running.ring.begun + 1
        running.ring.revoke(generation)
        if running.ring.begun < generation:
            certain.add(generation)
        running.listen(0.0005)
    enough.set()
    thread.join()
    running.wait(Ended | Dropped, lambda m: m.generation == generations[-1])
    sounded = {m.generation for m in running.messages if isinstance(m, Anchor | Started | Ended)}
    sounded |= {m.generation for m in running.messages if isinstance(m, Dropped) and m.samples}
    assert len(certain) == 100
    assert not certain & sounded


def test_every_message_survives_the_way() -> None:
    for message in (
        Opened("spk", 48_000, 2, 480, 10.0, True, False, 1),
        DeviceLost("spk", "missing", "no device", 200, 2),
        Started(1, 2, 3),
        Anchor(1, 2, 3),
        Ended(1, 2, 3),
        Dropped(1, 2, 3),
        Paused(1, 2, 3),
        Underrun(1, -1, 0.0, 3, 4),
        Alive(1, 2, 3),
        Released(1),
    ):
        packet = msgspec.msgpack.encode(message)
        assert msgspec.msgpack.decode(packet, type=FromPlayer) == message
    for message in (Configure(sink="null"), Expect(sound=True), Shutdown()):
        packet = msgspec.msgpack.encode(message)
        assert msgspec.msgpack.decode(packet, type=ToPlayer) == message


def test_every_state_can_be_left_and_ends() -> None:
    assert {state for state, _ in TRANSITIONS} == set(State) - {State.CLOSING}
    for state in set(State) - {State.CLOSING}:
        assert TRANSITIONS[state, Happening.STOP] is State.CLOSING
    assert set(TRANSITIONS.values()) == set(State)
