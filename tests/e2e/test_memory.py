"""Processes that grow over their limit are started anew between utterances, and nothing is lost."""

import signal
import time

import psutil
import pytest

from tests.bloat import bloated
from tests.daemon_process import DaemonProcess, leftovers, listening
from utterd.daemon.client import DaemonError
from utterd.daemon.handover import EXIT_AGAIN

LONG = "This is a rather long text. It has several sentences. " * 2
ONE_CLAUSE = "this has no comma and no other mark at which it could be cut into pieces " * 6 + "."
"""What a network computes at once, it needs memory for."""
LIMITS = {"UTTERD_LIMITS_DAEMON_RSS_MB": "80", "UTTERD_LIMITS_PLAYER_RSS_MB": "60"}
SETTLED_S = 3.2
"""What a process has by then, it needs."""


def start(tmp_path, voices_dir, **environment):
    data = tmp_path / "data"
    data.mkdir()
    (data / "voices").symlink_to(voices_dir / "voices")
    return DaemonProcess(
        tmp_path / "run",
        data,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null", **environment},
    )


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, voices_dir):
    process = start(tmp_path_factory.mktemp("memory"), voices_dir, **LIMITS)
    yield process
    if process.process.poll() is None:
        process.stop()


def health_of(daemon, process):
    """What `health` says of a process; {} while the daemon does not answer."""
    with daemon.client("looker") as client:
        try:
            return client.call("health", timeout_s=1.0)[process]
        except DaemonError:
            return {}


def changes(listener, what):
    """Names of the events that tell of something."""
    return [e["event"] for e in list(listener.events) if e.get("what") == what]


def wait_for_problem(daemon, process):
    """Wait until health says that a process is over its limit."""

    def told():
        problem = health_of(daemon, process).get("memory_problem", "")
        return f"over limits.{process}_rss_mb" in problem

    daemon.wait_until(told, 20.0, "the limit to be noticed")


def test_the_player_is_started_anew_after_the_text_that_sounds(daemon):
    time.sleep(SETTLED_S)
    first = daemon.child("utterd.audio.main").pid
    with listening(daemon) as listener, daemon.client("grow") as client:
        client.call("speak", text=LONG, id="long")
        listener.wait_for("long", "started")
        with bloated(daemon.config.reference):
            wait_for_problem(daemon, "player")
            assert daemon.child("utterd.audio.main").pid == first
            assert listener.wait_for("long")["event"] == "ended"
            daemon.wait_until(
                lambda: health_of(daemon, "player")["renewals"] == 1, 20.0, "another player"
            )
        client.call("speak", text="Here I am again.", id="next")
        assert listener.wait_for("next")["event"] == "ended"
        told = changes(listener, "player")
        names = {e["event"] for e in listener.events}
    assert told == ["degraded", "recovered"]
    assert "device_lost" not in names
    assert daemon.child("utterd.audio.main").pid != first
    assert 'renewing child=player reason="its ' in daemon.log.read_text()


def test_a_text_that_comes_while_the_player_is_started_anew_is_heard_once(daemon):
    time.sleep(SETTLED_S)
    with listening(daemon) as listener, daemon.client("hasty") as client:
        with bloated(daemon.config.reference):
            daemon.wait_until(
                lambda: changes(listener, "player")[:1] == ["degraded"], 20.0, "the limit"
            )
            client.call("speak", text="Am I early?", id="early")
            ended = listener.wait_for("early")
        assert ended["event"] == "ended"
        names = [e["event"] for e in listener.of("early")]
    assert names.count("started") == 1


def test_the_daemon_becomes_another_in_the_same_process_when_nothing_is_to_do(daemon):
    pid, handles = daemon.process.pid, psutil.Process(daemon.process.pid).num_fds()
    others = {child.pid for child in psutil.Process().children()}
    time.sleep(SETTLED_S)
    with listening(daemon) as listener, daemon.client("user") as client:
        client.call("set", gain=0.5)
        client.call("speak", text="The first of all.", id="one")
        listener.wait_for("one")
        client.call("pause")
        client.call("speak", text="Waiting for long.", id="held", durable=True)
        with bloated(daemon.config.events):
            wait_for_problem(daemon, "daemon")
            time.sleep(7.0)  # more than it would take, had it nothing to do
            assert health_of(daemon, "daemon")["renewals"] == 0
            client.call("resume")
            assert listener.wait_for("held")["event"] == "ended"
            daemon.wait_until(
                lambda: health_of(daemon, "daemon").get("renewals") == 1, 30.0, "another daemon"
            )
        client.call("warmup", timeout_s=30.0)
        client.call("speak", text="The same as before.", id="two")
        assert listener.wait_for("two")["event"] == "ended"
        daemon.wait_until(
            lambda: changes(listener, "daemon") == ["degraded", "recovered"], 10.0, "the events"
        )
        told = changes(listener, "daemon")
        assert client.call("set")["gain"] == 0.5
        assert client.call("status", id="one")["terminal"]["event"] == "ended"
    assert told == ["degraded", "recovered"]
    state = health_of(daemon, "daemon")
    assert state["pid"] == pid
    assert "over limits.daemon_rss_mb = 80" in state["renewed_because"]
    assert psutil.Process(pid).num_fds() <= handles + 4  # connections of this test
    assert {child.pid for child in psutil.Process().children()} <= others, "no second daemon"
    daemon.stop(signal.SIGTERM)
    assert daemon.process.returncode == 0
    assert leftovers(daemon.run_dir) == []


def test_a_worker_that_grew_is_started_anew_when_its_text_is_done(tmp_path, voices_dir):
    (tmp_path / "first").mkdir()
    daemon = start(tmp_path / "first", voices_dir)
    time.sleep(SETTLED_S)
    needs_mb = health_of(daemon, "voices")[0]["rss_bytes"] // 1_000_000
    daemon.stop()
    (tmp_path / "second").mkdir()
    limit = {"UTTERD_LIMITS_WORKER_RSS_MB": str(needs_mb + 15)}
    daemon = start(tmp_path / "second", voices_dir, **limit)
    time.sleep(SETTLED_S)
    with listening(daemon) as listener, daemon.client("long") as client:
        before = daemon.child("utterd.engine.worker").pid
        reply, _ = client.call_with_samples("synthesize", text=ONE_CLAUSE, timeout_s=100.0)
        assert reply["ok"]
        daemon.wait_until(
            lambda: health_of(daemon, "voices")[0]["renewals"] == 1, 20.0, "another worker"
        )
        client.call("speak", text="Good as new.", id="next")
        assert listener.wait_for("next")["event"] == "ended"
        (voice,) = health_of(daemon, "voices")
        told = changes(listener, "voice joe-us")
    assert (voice["breaker"], voice["restarts"]) == ("closed", 1)
    assert voice["pid"] != before
    assert told == ["degraded", "recovered"]
    daemon.stop()


def test_under_a_service_manager_the_daemon_ends_to_be_started_again(tmp_path, voices_dir):
    daemon = start(
        tmp_path, voices_dir, **LIMITS, NOTIFY_SOCKET=str(tmp_path / "nobody-reads-this")
    )
    time.sleep(SETTLED_S)
    with daemon.client("user") as client:
        client.call("set", gain=0.25)
        children = daemon.children()
        with bloated(daemon.config.events):
            assert daemon.process.wait(30.0) == EXIT_AGAIN
    assert not psutil.wait_procs(children, timeout=3.0)[1]
    assert leftovers(daemon.run_dir) == []
    daemon.start()
    with daemon.client("user") as client:
        assert client.call("set")["gain"] == 0.25
    assert health_of(daemon, "daemon")["renewals"] == 1
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["voices"]
    daemon.stop()


def test_a_limit_below_what_a_process_needs_does_nothing_but_be_told(tmp_path, voices_dir):
    daemon = start(
        tmp_path,
        voices_dir,
        UTTERD_LIMITS_DAEMON_RSS_MB="10",
        UTTERD_LIMITS_PLAYER_RSS_MB="10",
        UTTERD_LIMITS_WORKER_RSS_MB="10",
    )
    children = {child.pid for child in daemon.children()}

    def told():
        with daemon.client() as client:
            health = client.call("health")
        problems = [p["memory_problem"] for p in (*health["voices"], health["player"])]
        return all("is too low" in p for p in (*problems, health["daemon"]["memory_problem"]))

    daemon.wait_until(told, 20.0, "all three to be told")
    time.sleep(2.0)
    assert {child.pid for child in daemon.children()} == children
    lines = [line for line in daemon.log.read_text().splitlines() if "memory limit" in line]
    assert len(lines) == 3
    daemon.stop()
    assert daemon.process.returncode == 0
