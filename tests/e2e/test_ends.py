"""Every way in which a process can end: what goes on, and that nothing is left behind."""

import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from tests.daemon_process import DaemonProcess, leftovers, listening, runs
from utterd.daemon.client import DaemonError

POISON = "现在我要说一句非常非常长的话请你不要打断我因为我还没有说完"
LONG = "This is a rather long text. It has several sentences. " * 3


@pytest.fixture
def daemon(tmp_path, voices_dir):
    process = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null"},
    )
    yield process
    if process.process.poll() is None:
        process.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_within_a_second_and_leaves_nothing(daemon, number):
    with listening(daemon) as listener, daemon.client("end") as client:
        client.call("speak", text=LONG, id="cut")
        client.call("speak", text=LONG, id="waiting")
        listener.wait_for("cut", "started")
        took_s = daemon.stop(number)
        events = [listener.wait_for(id_) for id_ in ("cut", "waiting")]
    assert daemon.process.returncode == 0
    assert took_s < 1.5
    assert [(e["event"], e["reason"]) for e in events] == [("cancelled", "shutdown")] * 2
    assert leftovers(daemon.run_dir) == []


def test_kill_of_the_daemon_takes_its_children_and_the_next_start_cleans_up(daemon):
    with daemon.client("kill") as client:
        client.call("speak", text=LONG)
    children = daemon.children()
    assert len(children) == 3  # the player, the nursery, and a worker that it forked
    daemon.process.kill()
    daemon.process.wait()
    _, alive = psutil.wait_procs(children, timeout=3.0)
    assert not alive
    assert leftovers(daemon.run_dir)
    daemon.start()
    with listening(daemon) as listener, daemon.client("again") as client:
        client.call("speak", text="Back again.", id="back")
        assert listener.wait_for("back")["event"] == "ended"
    daemon.stop()
    assert leftovers(daemon.run_dir) == []


def test_a_second_daemon_is_refused_and_harms_nothing(daemon, voices_dir):
    second = subprocess.run(
        [sys.executable, "-m", "utterd.daemon.cli", "serve", "--run-dir", str(daemon.run_dir)],
        check=False,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert second.returncode == 1
    assert second.stderr.strip() == (
        f"utterd: another utterd (pid {daemon.process.pid}) uses {daemon.run_dir}"
    )
    with daemon.client() as client:
        assert client.call("ping")["ok"]


def test_a_killed_worker_costs_a_gap_and_not_the_utterance(daemon):
    with listening(daemon) as listener, daemon.client("gap") as client:
        whole = client.call_with_samples("synthesize", timeout_s=60.0, text=LONG)[0]["samples"]
        client.call("speak", text=LONG, id="gap")
        client.call("speak", text="And the next one.", id="next")
        listener.wait_for("gap", "started")
        daemon.child("utterd.engine.worker").kill()
        events = [listener.wait_for(id_) for id_ in ("gap", "next")]
    assert [event["event"] for event in events] == ["ended", "ended"]
    # Taken up at the very sample at which the ring ended: nothing lost, nothing said twice.
    assert events[0]["played_ms"] == pytest.approx(whole / 22050 * 1000, abs=1.0)
    degraded = [e for e in listener.events if e["event"] == "degraded"]
    assert degraded[0]["what"] == "voice joe-us"
    assert [e for e in listener.events if e["event"] == "recovered"]


def test_a_text_that_kills_its_worker_twice_fails_alone(daemon):
    """Killed at once after it got the text: a sentence takes Kokoro seconds."""
    with listening(daemon) as listener, daemon.client("poison") as client:
        client.call("load", voice="kokoro", timeout_s=90.0)
        client.call("speak", text=POISON, id="poison", voice="kokoro")
        client.call("speak", text="Innocent.", id="next")
        killed: list[int] = []

        def another_is_ready() -> bool:
            (one,) = [v for v in client.call("health")["voices"] if v["name"] == "kokoro"]
            return one["state"] == "ready" and one["pid"] not in killed

        for _ in range(2):
            daemon.wait_until(another_is_ready, 90.0, "the worker")
            (worker,) = [child for child in daemon.children() if runs(child, "kokoro")]
            killed.append(worker.pid)
            worker.kill()
        assert listener.wait_for("poison")["event"] == "failed"
        assert listener.wait_for("next")["event"] == "ended"


def test_a_killed_player_is_started_again_and_goes_on(daemon):
    with listening(daemon) as listener, daemon.client("player") as client:
        client.call("speak", text=LONG, id="talk")
        listener.wait_for("talk", "started")
        time.sleep(0.5)
        daemon.child("utterd.audio.main").kill()
        event = listener.wait_for("talk")
        names = [e["event"] for e in listener.events]
    assert event["event"] == "ended"
    assert names.count("device_lost") == 1
    assert names.count("device_back") == 1
    assert names.index("device_lost") < names.index("device_back")


def test_a_frozen_player_is_killed_and_started_again(daemon):
    player = daemon.child("utterd.audio.main")
    player.suspend()
    with listening(daemon) as listener:
        psutil.wait_procs([player], timeout=15.0)
        daemon.wait_until(
            lambda: any(e["event"] == "device_back" for e in listener.events), 15.0, "the device"
        )


def test_a_frozen_daemon_does_not_blame_its_children(daemon):
    with listening(daemon) as listener, daemon.client("frozen") as client:
        children = {child.pid for child in daemon.children()}
        client.call("speak", text=LONG, id="frozen")
        listener.wait_for("frozen", "started")
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(5.0)
        daemon.process.send_signal(signal.SIGCONT)
        assert listener.wait_for("frozen")["event"] == "ended"
        assert {child.pid for child in daemon.children()} == children
        assert not [e for e in listener.events if e["event"] in ("device_lost", "degraded")]


def test_a_worker_that_only_waits_for_the_device_is_left_alone(tmp_path, voices_dir):
    settings = tmp_path / "utterd.toml"
    settings.write_text("[engine]\nstall_timeout_s = 1.0\n")
    daemon = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        *("--voice", "joe-us", "--device", "no such device", "--config", str(settings)),
    )
    try:
        with listening(daemon) as listener, daemon.client("deaf") as client:
            worker = daemon.child("utterd.engine.worker").pid
            client.call("speak", text=LONG * 24, id="long")
            time.sleep(10.0)  # the ring is full after two, and more than twice the time is over
            assert not [e for e in listener.events if e["event"] in ("degraded", "failed")]
            assert daemon.child("utterd.engine.worker").pid == worker
            client.call("cancel", id="long")
            assert listener.wait_for("long")["event"] == "cancelled"
    finally:
        daemon.stop()


def test_a_large_worker_is_not_ended_while_it_makes_samples(tmp_path, voices_dir):
    daemon = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null", "UTTERD_LIMITS_WORKER_RSS_MB": "1"},
        wait=False,
    )
    try:
        daemon.wait_until((daemon.run_dir / "control.sock").exists, 30.0, "the socket")
        with daemon.client("samples") as client:
            reply, _ = client.call_with_samples("synthesize", text=LONG * 8, timeout_s=120.0)
        assert reply["samples"] > 22050 * 60
    finally:
        daemon.stop()


def test_who_waits_for_a_voice_that_is_unloaded_is_told(daemon):
    told: list[str] = []

    def load() -> None:
        with daemon.client("patient") as client, pytest.raises(DaemonError) as refused:
            client.call("load", voice="kokoro", timeout_s=60.0)
        told.append(str(refused.value))

    waiting = threading.Thread(target=load)
    waiting.start()
    with daemon.client("hasty") as client:
        daemon.wait_until(lambda: len(daemon.children()) == 4, 30.0, "the worker")
        assert client.call("unload", voice="kokoro")["ok"]
    waiting.join()
    assert "the voice kokoro was unloaded" in told[0]


def test_without_a_device_the_daemon_stays_and_says_so(tmp_path, voices_dir):
    daemon = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        *("--voice", "joe-us", "--device", "no such device"),
    )
    try:
        with listening(daemon) as listener, daemon.client("deaf") as client:
            client.call("speak", text="Nobody hears this.", id="silent", ttl_ms=1500)
            assert listener.wait_for("silent")["event"] == "dropped"
            health = client.call("health")
            daemon.wait_until(
                lambda: any(e["event"] == "device_lost" for e in listener.events), 10.0, "the event"
            )
        assert health["audible"] is False
        assert "no such device" in health["problems"][0]
    finally:
        daemon.stop()


def test_a_broken_voice_fails_what_waits_for_it_with_the_reason(tmp_path, voices_dir):
    source = voices_dir / "voices" / "joe-us"
    broken = tmp_path / "data" / "voices" / "joe-us"
    broken.mkdir(parents=True)
    for file in source.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "model.onnx").write_bytes(b"not a graph")
    daemon = DaemonProcess(
        tmp_path / "run",
        tmp_path / "data",
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null"},
        wait=False,
    )
    try:
        daemon.wait_until((daemon.run_dir / "events.sock").exists, 10.0, "the sockets")
        with listening(daemon) as listener, daemon.client() as client:
            client.call("speak", text="Hello.", id="h")
            event = listener.wait_for("h")
        assert event["event"] == "failed"
        assert event["code"] == "unavailable"
        assert "model.onnx" in event["message"]
    finally:
        daemon.stop()


def test_a_voice_that_is_added_later_is_found(tmp_path, voices_dir):
    daemon = DaemonProcess(
        tmp_path / "run",
        tmp_path / "data",
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null"},
        wait=False,
    )
    try:
        daemon.wait_until((daemon.run_dir / "control.sock").exists, 10.0, "the socket")
        with daemon.client() as client:
            problem = client.call("health")["problems"][-1]
            assert problem == "no voice 'joe-us' is installed (installed: small)"
            voices = tmp_path / "data" / "voices"
            voices.mkdir(parents=True)
            (voices / "joe-us").symlink_to(voices_dir / "voices" / "joe-us")
            daemon.wait_until(lambda: client.call("health")["audible"], 90.0, "the voice")
    finally:
        daemon.stop()


def test_a_daemon_that_nobody_can_find_ends_and_says_why(daemon):
    children = daemon.children()
    for file in daemon.run_dir.iterdir():
        file.unlink()
    daemon.run_dir.rmdir()
    assert daemon.process.wait(20) == 1
    _, alive = psutil.wait_procs(children, timeout=5.0)
    assert not alive
    assert "were taken away while it ran" in daemon.log.read_text()
    daemon.start()
    with listening(daemon) as listener, daemon.client() as client:
        client.call("speak", text="Back again.", id="back")
        assert listener.wait_for("back")["event"] == "ended"
