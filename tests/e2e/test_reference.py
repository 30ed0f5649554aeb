"""The reference stream of a whole daemon, as a program that cancels echo takes it."""

import signal
import wave

import numpy as np
import pytest

from tests.daemon_process import DaemonProcess, leftovers, listening
from tests.e2e.command import at, complaint, done, finish, run, spawn


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, voices_dir):
    process = DaemonProcess(
        tmp_path_factory.mktemp("reference") / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null", "UTTERD_SOCKET_GROUP": "daemon"},
    )
    yield process
    if process.process.poll() is None:
        process.stop()


def told(client):
    """What health says of the stream."""
    return client.call("health")["player"]["reference"]


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


def test_the_command_records_what_is_played_and_ends_at_ctrl_c(daemon, tmp_path):
    file = tmp_path / "played.wav"
    recorder = spawn("reference", "--wav", str(file), *at(daemon))
    with daemon.client("speaker") as client, listening(daemon) as listener:
        daemon.wait_until(
            lambda: client.call("health")["player"]["reference"]["subscribed"], 20.0, "a subscriber"
        )
        client.call("speak", text="Is it recorded?", id="one")
        ended = listener.wait_for("one")
    recorder.send_signal(signal.SIGINT)
    result = finish(recorder)
    assert (result.returncode, result.stdout) == (0, "")
    assert "missing" not in result.stderr
    with wave.open(str(file)) as wav:
        assert (wav.getnchannels(), wav.getsampwidth(), wav.getframerate()) == (1, 2, 48_000)
        loud = np.flatnonzero(np.frombuffer(wav.readframes(wav.getnframes()), "<i2"))
    assert (loud[-1] - loud[0]) / 48 == pytest.approx(ended["played_ms"], rel=0.2)


def test_the_command_says_where_no_daemon_is(tmp_path):
    place = ("--run-dir", str(tmp_path), "--log-level", "error")
    result = run("reference", "--wav", str(tmp_path / "no.wav"), *place)
    assert "no daemon answers" in complaint(result, 3)
    assert not (tmp_path / "no.wav").exists()


def test_the_command_ends_after_the_seconds_asked_for(daemon, tmp_path):
    file = tmp_path / "short.wav"
    done(run("reference", "--wav", str(file), "--seconds", "0.5", *at(daemon)))
    with wave.open(str(file)) as wav:
        assert 0 < wav.getnframes() <= 30_000


def test_health_tells_of_it_and_nothing_is_left(daemon):
    reference = daemon.run_dir / "reference.sock"
    with daemon.client("canceller") as canceller:
        assert canceller.call("info")["reference"] == f"ipc://{reference}"
        daemon.wait_until(lambda: not told(canceller)["subscribed"], 10.0, "no subscriber")
        before = told(canceller)["frames"]
        next(canceller.reference(20.0))
        daemon.wait_until(
            lambda: told(canceller)["subscribed"], 10.0, "the subscription to be told"
        )
        daemon.wait_until(lambda: told(canceller)["frames"] > before, 10.0, "frames")
        assert (told(canceller)["dropped"], told(canceller)["problem"]) == (0, "")
    permissions = reference.stat().st_mode & 0o777
    assert (permissions, reference.group()) == (0o660, "daemon")
    daemon.child("utterd.audio.main").send_signal(signal.SIGSTOP)  # it can't remove it itself
    daemon.stop()
    assert leftovers(daemon.run_dir) == []
