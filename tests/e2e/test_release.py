"""A daemon whose device is let go while nothing is said: it is heard all the same, and at once."""

import time

import pytest

from tests.daemon_process import DaemonProcess, listening
from tests.e2e.command import complaint, run

PATIENCE_S = 20.0


def start(tmp_path, voices_dir, **audio):
    environment = {f"UTTERD_AUDIO_{key}".upper(): str(value) for key, value in audio.items()}
    return DaemonProcess(
        tmp_path / "run", voices_dir, *("--voice", "joe-us"), environment=environment
    )


@pytest.fixture
def daemon(tmp_path, voices_dir):
    process = start(tmp_path, voices_dir, sink="null", release_after_s=0.3)
    yield process
    if process.process.poll() is None:
        process.stop()


def device(daemon):
    with daemon.client("look") as client:
        return client.call("health")["device"]


def wait_until_let_go(daemon):
    daemon.wait_until(lambda: device(daemon)["released"], PATIENCE_S, "the release")


def test_a_device_that_was_let_go_can_be_heard(daemon):
    with listening(daemon) as listener, daemon.client("says") as client:
        for number in range(3):
            wait_until_let_go(daemon)
            health = client.call("health")
            assert health["audible"] is True
            assert health["problems"] == []
            assert (health["device"]["open"], health["device"]["rate"]) == (False, 48000)
            before_ns = time.monotonic_ns()
            client.call("speak", text="Here I am.", id=f"u{number}")
            started = listener.wait_for(f"u{number}", "started")
            ended = listener.wait_for(f"u{number}")
            assert ended["event"] == "ended"
            assert before_ns < started["dac_ns"] == ended["stages"]["first_sound"]
        names = {event["event"] for event in listener.events}
    assert not names & {"device_lost", "device_back", "underrun", "degraded"}


def test_a_device_that_was_let_go_is_not_taken_for_dead(daemon):
    wait_until_let_go(daemon)
    time.sleep(4.0)  # longer than a player may be silent
    with daemon.client("look") as client:
        health = client.call("health")
    assert health["audible"] is True
    assert health["player"]["restarts"] == 0
    assert health["device"]["released"] is True


def test_it_is_opened_before_there_is_anything_to_play(daemon):
    wait_until_let_go(daemon)
    worker = daemon.child("utterd.engine.worker")
    with listening(daemon) as listener, daemon.client("says") as client:
        worker.suspend()
        try:
            client.call("speak", text="Not yet.", id="held")
            daemon.wait_until(lambda: device(daemon)["open"], PATIENCE_S, "the device")
            assert not [e for e in listener.of("held") if e["event"] == "started"]
        finally:
            worker.resume()
        assert listener.wait_for("held")["event"] == "ended"
    wait_until_let_go(daemon)


def test_a_player_killed_while_its_device_was_let_go(daemon):
    wait_until_let_go(daemon)
    with listening(daemon) as listener, daemon.client("says") as client:
        daemon.child("utterd.audio.main").kill()
        listener.wait_for("", "device_back")
        client.call("speak", text="Here I am again.", id="again")
        assert listener.wait_for("again")["event"] == "ended"
        assert client.call("health")["player"]["restarts"] == 1
    wait_until_let_go(daemon)


def test_a_device_that_went_away_meanwhile_is_told_and_what_was_said_is_kept(tmp_path, voices_dir):
    wav = tmp_path / "out.wav"
    daemon = start(tmp_path, voices_dir, sink="wav", wav=wav, release_after_s=0.3)
    try:
        wait_until_let_go(daemon)
        wav.unlink()
        wav.mkdir()
        with listening(daemon) as listener, daemon.client("says") as client:
            assert client.call("health")["audible"] is True
            client.call("speak", text="Is this thing on?", id="kept")
            assert "directory" in listener.wait_for("", "device_lost")["message"]
            assert client.call("health")["audible"] is False
            wav.rmdir()
            listener.wait_for("", "device_back")
            assert listener.wait_for("kept")["event"] == "ended"
    finally:
        daemon.stop()


def test_settings_that_contradict_each_other_start_nothing(tmp_path):
    file = tmp_path / "utterd.toml"
    file.write_text("[audio]\nkeep_alive = true\nrelease_after_s = 5\n")
    line = complaint(run("serve", "--config", str(file)), 2)
    assert "keep_alive" in line
    assert "release_after_s" in line
