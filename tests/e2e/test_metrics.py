"""The metrics of a real daemon, through the command and as a Prometheus server reads them."""

import http.client
import os
import socket

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.daemon_process import DaemonProcess, listening
from tests.e2e.command import LONG, PATIENCE_S, complaint, run

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, voices_dir, port):
    environment = {
        "UTTERD_AUDIO_SINK": "null",
        "UTTERD_METRICS_LISTEN": f"127.0.0.1:{port}",
    }
    run_dir = tmp_path_factory.mktemp("metrics") / "run"
    process = DaemonProcess(run_dir, voices_dir, "--voice", "joe-us", environment=environment)
    yield process
    process.stop()


class Scrape:
    """One reading of the port."""

    def __init__(self, port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/plain")
            text = response.read().decode()
        finally:
            connection.close()
        self._samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def of(self, name: str, **labels: str) -> float:
        """A sample; 0 where there is none yet."""
        return self._samples.get((f"utterd_{name}", tuple(sorted(labels.items()))), 0.0)


def asked(daemon: DaemonProcess) -> dict:
    with daemon.client() as client:
        return client.call("metrics")


def speak(daemon: DaemonProcess, **fields) -> dict:
    """Speak, and give the terminal event."""
    with listening(daemon) as listener, daemon.client("metrics") as client:
        id_ = client.call("speak", **fields)["id"]
        return listener.wait_for(id_, timeout_s=PATIENCE_S)


def test_stages_are_counted_for_what_was_heard(daemon, port):
    before = Scrape(port)
    assert speak(daemon, text="Count this.")["event"] == "ended"
    after, told = Scrape(port), asked(daemon)
    for stage in ("received_to_first_sound", "phonemes_to_encoded"):
        count = after.of("stage_seconds_count", stage=stage)
        assert count == before.of("stage_seconds_count", stage=stage) + 1
        assert told["stages"][stage]["count"] == count
        total_s = after.of("stage_seconds_sum", stage=stage)
        assert told["stages"][stage]["sum_ms"] / 1000 == pytest.approx(total_s)
        assert after.of("stage_seconds_bucket", stage=stage, le="+Inf") == count
        assert told["stages"][stage]["last_minute"]["median_ms"] > 0
    assert told["worker_overhead"]["count"] == after.of("worker_overhead_seconds_count") > 0


def test_every_end_is_counted_by_its_reason(daemon, port):
    before = Scrape(port)
    with listening(daemon) as listener, daemon.client("ends") as client:
        client.call("speak", text=LONG, id="cut")
        client.call("speak", text=LONG, id="late", ttl_ms=1)
        client.call("speak", text="Now.", id="now", queue="flush")
        client.call("speak", text="<speak>", id="bad", format="ssml")
        ends = {id_: listener.wait_for(id_) for id_ in ("cut", "late", "now", "bad")}
    after = Scrape(port)
    reasons = [(e["event"], e.get("reason", e.get("code", ""))) for e in ends.values()]
    assert {event for event, _ in reasons} >= {"ended", "cancelled", "failed"}
    for end, reason in set(reasons):
        grown = after.of("utterances_total", end=end, reason=reason) - before.of(
            "utterances_total", end=end, reason=reason
        )
        assert grown == reasons.count((end, reason))


def test_the_queue_is_measured(daemon, port):
    with daemon.client("queue") as client:
        client.call("pause")
        try:
            for _ in range(3):
                client.call("speak", text="Waits.")
            found = Scrape(port)
            assert found.of("queue_utterances", state="waiting") == 3
            assert found.of("queue_limit_utterances") == 100
            assert found.of("paused") == 1
        finally:
            client.call("cancel")
            client.call("resume")
    assert asked(daemon)["queue"] == {"on_way": 0, "waiting": 0, "limit": 100, "paused": False}


def test_device_and_processes_are_measured(daemon, port):
    found, told = Scrape(port), asked(daemon)
    assert found.of("audible") == found.of("device_open", device="null", sink="null") == 1
    assert found.of("device_rate_hertz") == told["device"]["rate"] == 48000
    assert found.of("device_latency_seconds") == pytest.approx(0.005)
    assert found.of("breaker_state", voice="joe-us", state="closed") == 1
    assert found.of("real_time_factor", voice="joe-us", runtime="onnxruntime-cpu") > 0
    for name, pid in (
        ("daemon", daemon.process.pid),
        ("player", told["player"]["pid"]),
        ("worker joe-us", told["voices"][0]["pid"]),
    ):
        measured = psutil.Process(pid).memory_info().rss
        assert found.of("resident_memory_bytes", process=name) == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize(
    ("module", "name"),
    [("utterd.engine.worker", "worker joe-us"), ("utterd.audio.main", "player")],
)
def test_restarts_are_counted(daemon, port, module, name):
    before = Scrape(port).of("restarts_total", process=name)
    daemon.child(module).kill()

    def back() -> bool:
        found = Scrape(port)
        ready = found.of("process_state", process=name, state="ready") == 1
        return ready and found.of("restarts_total", process=name) == before + 1

    daemon.wait_until(back, PATIENCE_S, f"the {name} to be counted as restarted")
    daemon.wait_until(
        lambda: Scrape(port).of("audible") == 1, PATIENCE_S, "the daemon to be heard again"
    )


def test_memory_fits_a_small_device(daemon, port):
    """The exporter, its library and a hundred readings included."""
    for _ in range(20):
        Scrape(port)
    settled = psutil.Process(daemon.process.pid).memory_info().rss
    for _ in range(80):
        found = Scrape(port)
    grown = psutil.Process(daemon.process.pid).memory_info().rss - settled
    assert grown < 3 * MEGABYTE
    service = found.of("resident_memory_bytes", process="daemon")
    player = found.of("resident_memory_bytes", process="player")
    assert service < 60 * MEGABYTE
    assert service + player < 120 * MEGABYTE


def test_clients_that_never_ask_do_not_hold_up_speech(daemon, port):
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
    try:
        assert speak(daemon, text="Unmoved.")["event"] == "ended"
        assert Scrape(port).of("audible") == 1
    finally:
        for one in silent:
            one.close()


def test_it_listens_where_it_was_told_and_nowhere_by_default(daemon, quiet_daemon, port):
    def listens(process: DaemonProcess) -> list[tuple[str, int]]:
        found = psutil.Process(process.process.pid).net_connections("inet")
        return [tuple(one.laddr) for one in found if one.status == psutil.CONN_LISTEN]

    assert listens(daemon) == [("127.0.0.1", port)]
    assert listens(quiet_daemon) == []


def test_a_port_that_is_taken_is_told(daemon, tmp_path, port):
    environment = os.environ | {"UTTERD_METRICS_LISTEN": f"127.0.0.1:{port}"}
    place = ("--run-dir", str(tmp_path / "run"), "--data-dir", str(tmp_path / "data"))
    result = run("serve", *place, "--log-level", "error", env=environment)
    line = complaint(result, 1)
    assert f"127.0.0.1:{port}" in line
    assert "[metrics]" in line
