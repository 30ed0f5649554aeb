"""The reference stream of a whole daemon, as a program that cancels echo takes it."""

import signal

import numpy as np
import pytest

from tests.daemon_process import DaemonProcess, leftovers, listening


@pytest.fixture
def daemon(tmp_path, voices_dir):
    process = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null", "UTTERD_SOCKET_GROUP": "daemon"},
    )
    yield process
    if process.process.poll() is None:
        process.stop()


def test_what_is_spoken_is_in_it_at_the_time_of_the_event(daemon):
    with daemon.client("assistant") as client, daemon.client("canceller") as canceller:
        stream = canceller.reference(5.0)
        next(stream)
        with listening(daemon) as listener:
            client.call("speak", text="Do you hear me?", id="one")
            started, ended = listener.wait_for("one", "started"), listener.wait_for("one")
        first_loud_ns = 0
        for header, samples in stream:
            level = np.abs(np.frombuffer(samples, "<f4"))
            if not first_loud_ns and level.max(initial=0) > 10 ** (-50 / 20):
                at = int(np.argmax(level > 10 ** (-50 / 20)))
                first_loud_ns = header["dac_ns"] + at * 1_000_000_000 // header["rate"]
            if header["dac_ns"] > ended["dac_ns"]:
                break
        assert abs(first_loud_ns - started["dac_ns"]) < 100_000


def test_it_goes_on_after_the_player_was_killed(daemon):
    with daemon.client("canceller") as canceller:
        stream = canceller.reference(20.0)
        first, _ = next(stream)
        daemon.child("utterd.audio.main").kill()
        again = next(h for h, _ in stream if h["opened_ns"] != first["opened_ns"])
        assert again["sequence"] < first["sequence"] + 1000
        assert again["opened_ns"] > first["opened_ns"]


def test_health_tells_of_it_and_nothing_is_left(daemon):
    reference = daemon.run_dir / "reference.sock"
    with daemon.client("canceller") as canceller:
        assert canceller.call("info")["reference"] == f"ipc://{reference}"
        assert canceller.call("health")["player"]["reference"] == {
            "subscribed": False,
            "frames": 0,
            "dropped": 0,
            "problem": "",
        }
        next(canceller.reference(20.0))
        daemon.wait_until(
            lambda: canceller.call("health")["player"]["reference"]["subscribed"],
            10.0,
            "the subscription to be told",
        )
    permissions = reference.stat().st_mode & 0o777
    assert (permissions, reference.group()) == (0o660, "daemon")
    daemon.child("utterd.audio.main").send_signal(signal.SIGSTOP)  # it can't remove it itself
    daemon.stop()
    assert leftovers(daemon.run_dir) == []
