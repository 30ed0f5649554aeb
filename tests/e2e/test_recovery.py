"""Workers and their nursery, killed again and again while they speak: every word is heard."""

import os
import signal
import wave
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.daemon_process import DaemonProcess, listening, runs

LINE = "Line number {}, and the next."
LONG = "This is a rather long text. It has several sentences. " * 4


@pytest.fixture
def speed():
    """How many times as fast as time it plays, and so must be spoken, lest there be gaps."""
    return 4


@pytest.fixture
def daemon(tmp_path, voices_dir, speed):
    process = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment={
            "UTTERD_AUDIO_SINK": "wav",
            "UTTERD_AUDIO_WAV": str(tmp_path / "heard.wav"),
            "UTTERD_AUDIO_RATE": "22050",
            "UTTERD_AUDIO_SPEED": str(speed),
            "UTTERD_CACHE_MEMORY_MB": "0",
            "UTTERD_CACHE_DISK_MB": "0",
        },
    )
    yield process
    if process.process.poll() is None:
        process.stop()


def worker(daemon: DaemonProcess) -> psutil.Process:
    """The worker that lives now, waited for."""
    found: list[psutil.Process] = []

    def lives() -> bool:
        found[:] = [child for child in daemon.children() if runs(child, "utterd.engine.worker")]
        return len(found) == 1

    daemon.wait_until(lives, 60.0, "a worker")
    return found[0]


def heard(path: Path) -> np.ndarray:
    """The recording without its silence, full scale 1."""
    with wave.open(str(path)) as file:
        assert file.getnchannels() == 2
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)[::2]
    return samples[np.abs(samples) > 0] / 32768


def test_twenty_workers_killed_in_a_row_cost_not_a_word(daemon, tmp_path):
    energy = 0.0
    with listening(daemon) as listener, daemon.client("reader") as client:
        for number in range(20):
            text = LINE.format(number)
            reply, data = client.call_with_samples("synthesize", timeout_s=60.0, text=text)
            samples = np.frombuffer(data, "<i2") / 32768
            energy += float(np.sum(samples**2))
            victim = worker(daemon)
            client.call("speak", text=text, id=f"l{number}")
            if number % 2:  # else as soon as it was accepted
                listener.wait_for(f"l{number}", "started")
            victim.kill()
            ended = listener.wait_for(f"l{number}")
            assert ended["event"] == "ended", ended
            assert ended["played_ms"] == pytest.approx(reply["samples"] / 22.05, abs=1.0)
        health = client.call("health")
    assert health["voices"][0]["restarts"] == 20
    assert health["voices"][0]["breaker"] == "closed"
    daemon.stop()
    # A line that was said twice or lost would be a twentieth of it.
    sound = heard(tmp_path / "heard.wav")
    assert float(np.sum(sound**2)) == pytest.approx(energy, rel=0.02)


@pytest.mark.parametrize("speed", [1])
def test_a_killed_nursery_is_replaced_and_nobody_hears_it(daemon):
    with listening(daemon) as listener, daemon.client("reader") as client:
        client.call("speak", text=LONG[: len(LONG) // 2], id="on")
        listener.wait_for("on", "started")
        speaks = worker(daemon)
        first = daemon.child("utterd.engine.nursery")
        first.kill()
        assert listener.wait_for("on")["event"] == "ended"
        assert speaks.is_running()
        daemon.wait_until(lambda: nursery_pid(daemon) not in (0, first.pid), 60.0, "another one")
        speaks.kill()
        client.call("speak", text="And on.", id="further")
        assert listener.wait_for("further")["event"] == "ended"
        assert worker(daemon).ppid() == nursery_pid(daemon)
        assert not [e for e in listener.events if e["event"] in ("device_lost", "underrun")]


def nursery_pid(daemon: DaemonProcess) -> int:
    pids = [child.pid for child in daemon.children() if runs(child, "utterd.engine.nursery")]
    return pids[0] if pids else 0


def test_worker_and_nursery_killed_at_once_cost_no_text(daemon):
    with listening(daemon) as listener, daemon.client("reader") as client:
        for number in range(3):
            client.call("speak", text=LONG, id=f"both{number}")
            listener.wait_for(f"both{number}", "started")
            for victim in (daemon.child("utterd.engine.nursery"), worker(daemon)):
                victim.kill()
            assert listener.wait_for(f"both{number}")["event"] == "ended"


def test_a_nursery_that_stands_still_is_killed_and_a_voice_comes_all_the_same(daemon):
    first = daemon.child("utterd.engine.nursery")
    os.kill(first.pid, signal.SIGSTOP)
    with listening(daemon) as listener, daemon.client("reader") as client:
        worker(daemon).kill()
        client.call("speak", text="Late, but said.", id="late")
        assert listener.wait_for("late", timeout_s=90.0)["event"] == "ended"
    assert nursery_pid(daemon) != first.pid


def test_after_a_kill_of_the_daemon_no_worker_or_nursery_is_left(daemon):
    children = daemon.children()
    daemon.process.kill()
    daemon.process.wait()
    _, alive = psutil.wait_procs(children, timeout=5.0)
    assert not alive
