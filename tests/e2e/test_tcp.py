"""TCP only where it is configured, and then only for clients whose key is known."""

import json
import socket

import pytest
import zmq
import zmq.auth

from tests.daemon_process import DaemonProcess


def free_port() -> int:
    """A port with a free one above it."""
    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        return int(first.getsockname()[1])


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("server", "friend", "stranger"):
        zmq.auth.create_certificates(folder, name)
    clients = folder / "clients"
    clients.mkdir()
    (folder / "friend.key").rename(clients / "friend.key")
    secret = zmq.auth.load_certificate(folder / "server.key_secret")[1]
    (folder / "server.z85").write_bytes(secret)
    return folder


@pytest.fixture(scope="module")
def port(tmp_path_factory, voices_dir, keys):
    number = free_port()
    environment = {
        "UTTERD_AUDIO_SINK": "null",
        "UTTERD_SOCKET_TCP": f"tcp://127.0.0.1:{number}",
        "UTTERD_SOCKET_CURVE_SECRET_KEY_FILE": str(keys / "server.z85"),
        "UTTERD_SOCKET_CURVE_CLIENTS_DIR": str(keys / "clients"),
    }
    process = DaemonProcess(
        tmp_path_factory.mktemp("tcp") / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment=environment,
    )
    yield number
    process.stop()


def ask(port: int, keys, name: str | None, timeout_ms: int) -> dict | None:
    context = zmq.Context()
    try:
        client = context.socket(zmq.REQ)
        if name is not None:
            public, secret = zmq.auth.load_certificate(keys / f"{name}.key_secret")
            client.curve_publickey, client.curve_secretkey = public, secret
            client.curve_serverkey = zmq.auth.load_certificate(keys / "server.key")[0]
        client.connect(f"tcp://127.0.0.1:{port}")
        client.send(b'{"command": "ping"}')
        return json.loads(client.recv()) if client.poll(timeout_ms) else None
    finally:
        context.destroy(linger=0)


def test_a_known_key_is_served(port, keys):
    reply = ask(port, keys, "friend", 20_000)
    assert reply is not None
    assert reply["ok"]


@pytest.mark.parametrize("name", ["stranger", None])
def test_no_other_is(port, keys, name):
    assert ask(port, keys, name, 1500) is None
    assert ask(port, keys, "friend", 20_000) is not None


def test_without_keys_the_daemon_does_not_start(tmp_path, voices_dir):
    daemon = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        environment={
            "UTTERD_AUDIO_SINK": "null",
            "UTTERD_SOCKET_TCP": f"tcp://127.0.0.1:{free_port()}",
        },
        wait=False,
    )
    assert daemon.process.wait(20) == 1
    assert "curve_secret_key_file" in daemon.log.read_text()
    assert "Traceback" not in daemon.log.read_text()
