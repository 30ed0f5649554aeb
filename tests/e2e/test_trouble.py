"""What is degraded, in a whole daemon: event, health, metrics and log agree, and it recovers."""

import pytest

from tests.daemon_process import DaemonProcess, listening


@pytest.fixture
def daemon(tmp_path):
    process = DaemonProcess(
        tmp_path / "run",
        tmp_path / "data",
        *("--voice", "joe-us"),
        environment={
            "UTTERD_AUDIO_DEVICE": "there is no such device",
            "UTTERD_AUDIO_SINK": "device",
        },
        wait=False,
    )
    process.wait_until((process.run_dir / "events.sock").exists, 20.0, "its sockets")
    yield process
    process.stop()


def test_a_device_that_stays_away_is_logged_once(daemon):
    with listening(daemon) as listener:
        daemon.wait_until(
            lambda: [e["event"] for e in listener.events].count("device_lost") >= 4,
            60.0,
            "some tries",
        )
        messages = {e["message"] for e in listener.events if e["event"] == "device_lost"}
    told = [line for line in daemon.log.read_text().splitlines() if "device lost" in line]
    assert len(told) == len(messages)


def test_a_missing_voice_is_degraded_until_it_is_there(daemon, voices_dir):
    def degraded(reply: str) -> dict[str, str]:
        with daemon.client() as client:
            return {one["what"]: one["message"] for one in client.call(reply)["degraded"]}

    with listening(daemon) as listener:
        daemon.wait_until(lambda: "default voice" in degraded("health"), 20.0, "it to be told")
        assert "no voice 'joe-us'" in degraded("health")["default voice"]
        assert degraded("metrics") == degraded("health")
        (daemon.run_dir.parent / "data").mkdir(exist_ok=True)
        (daemon.run_dir.parent / "data" / "voices").symlink_to(voices_dir / "voices")
        daemon.wait_until(
            lambda: any(
                (e["event"], e.get("what")) == ("recovered", "default voice")
                for e in listener.events
            ),
            60.0,
            "it to be well again",
        )
    assert "default voice" not in degraded("health")
    log = daemon.log.read_text()
    assert log.count("what='default voice'") + log.count('what="default voice"') == 2, log
