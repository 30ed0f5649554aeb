"""Nothing is made for clients that are gone, and those that stay get theirs."""

import json
import socket
import subprocess
import sys

import pytest
import zmq

from tests.daemon_process import DaemonProcess

LONG = " ".join(  # no sentence twice, which the cache would have ready
    f"This sentence, number {number} of them, is said whether or not anybody listens any more."
    for number in range(1, 160)
)
TOLD = "samples are not wanted any more"


@pytest.fixture
def daemon(tmp_path, voices_dir):
    process = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null"},
    )
    yield process
    process.stop()


def ask(address: str, text: str) -> None:
    """What a client does that is killed while it waits."""
    dealer = zmq.Context().socket(zmq.DEALER)
    dealer.connect(address)
    dealer.send(json.dumps({"command": "synthesize", "text": text}).encode())
    print("asked", flush=True)
    dealer.poll()


def test_what_a_killed_client_asked_for_is_abandoned(daemon):
    program = f"from tests.e2e.test_gone import ask; ask({daemon.config.control!r}, {LONG!r})"
    clients = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(3)
    ]
    for client in clients:
        with client.stdout:
            assert client.stdout.readline() == b"asked\n"
    with daemon.client() as stays:
        assert stays.call("ping")["ok"]  # behind theirs
        for client in clients:
            client.kill()
            client.wait()
        daemon.wait_until(
            lambda: daemon.log.read_text().count(TOLD) >= 1, 30.0, "the daemon to notice"
        )
        _, samples = stays.call_with_samples("synthesize", text="Still here.", timeout_s=60.0)
        assert len(samples) > 10_000
        daemon.wait_until(
            lambda: sum_of_jobs(daemon.log.read_text()) == 3, 30.0, "all three to be dropped"
        )


def sum_of_jobs(log: str) -> int:
    return sum(int(line.split("jobs=")[1].split()[0]) for line in log.splitlines() if TOLD in line)


def test_a_client_that_stays_gets_everything(daemon):
    text = LONG[:600]
    with daemon.client() as client:
        _, samples = client.call_with_samples("synthesize", text=text, timeout_s=120.0)
        assert len(samples) > 200_000
    assert TOLD not in daemon.log.read_text()


def test_what_an_http_client_hung_up_on_is_abandoned(daemon):
    bridge = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "utterd.daemon.cli", "http"),
            *("--run-dir", str(daemon.run_dir), "--listen", "127.0.0.1:0"),
        ],
        stderr=subprocess.PIPE,
    )
    try:
        with bridge.stderr:
            line = b""
            while b" address=" not in line:
                line = bridge.stderr.readline()
                assert line
            host, _, port = line.split(b" address=")[1].split()[0].decode().rpartition(":")
            body = json.dumps({"input": LONG, "voice": "joe-us"}).encode()
            head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}"
            with socket.create_connection((host, int(port)), timeout=60.0) as client:
                client.sendall(head.encode() + b"\r\n\r\n" + body)
                assert client.recv(1), "the first samples are there, and most are not"
            daemon.wait_until(lambda: TOLD in daemon.log.read_text(), 30.0, "the daemon to notice")
            bridge.terminate()
    finally:
        bridge.kill()
        bridge.wait()
