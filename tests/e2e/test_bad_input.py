"""Whatever comes in on the socket: a clear answer, and the next utterance speaks."""

import json
import time

import msgspec
import pytest
import zmq

from tests.daemon_process import DaemonProcess, listening
from tests.flood import flooded
from utterd.daemon.client import DaemonError


@pytest.fixture
def connection(quiet_daemon):
    """A bare REQ socket, as any client in any language would have it."""
    context = zmq.Context()
    socket = context.socket(zmq.REQ)
    socket.connect(quiet_daemon.config.control)
    socket.rcvtimeo = 20_000
    yield socket
    context.destroy(linger=0)


@pytest.fixture(autouse=True)
def speaks_afterwards(quiet_daemon):
    yield
    with listening(quiet_daemon) as listener, quiet_daemon.client() as client:
        client.call("cancel", all=True)
        client.call("speak", text="Still here.", id="afterwards", rate=3.0)
        assert listener.wait_for("afterwards")["event"] == "ended"


def ask(connection: "zmq.Socket[bytes]", frame: bytes) -> dict:
    connection.send(frame)
    return json.loads(connection.recv_multipart()[0])


@pytest.mark.parametrize(
    ("frame", "code", "field"),
    [
        (b'{"command": "speak"', "bad_request", None),
        (b"{}", "bad_request", "command"),
        (b'{"command": "sing"}', "bad_request", "command"),
        (b'{"command": "speak"}', "bad_request", "text"),
        (b'{"command": "speak", "text": 5}', "bad_request", "text"),
        (b'{"command": "speak", "text": "a", "rate": "fast"}', "bad_request", "rate"),
        (b'{"command": "speak", "text": "a", "rate": 99}', "bad_request", "rate"),
        (b'{"command": "speak", "text": "a", "loud": true}', "bad_request", "loud"),
        (b'{"command": "speak", "text": "a", "voice": "nobody"}', "unknown_voice", "voice"),
        (b'{"command": "speak", "text": "a", "voice": "joe-us/x"}', "unknown_voice", "voice"),
        (b'{"command": "speak", "text": ""}', "bad_request", "text"),
        (b'{"command": "speak", "text": " \\n "}', "bad_request", "text"),
        (b'{"command": "cancel", "id": "never"}', "unknown_id", "id"),
        (b'{"command": "append", "id": "never", "text": "a"}', "unknown_id", "id"),
        (b'{"command": "status", "id": "never"}', "unknown_id", "id"),
        (b'{"command": "synthesize", "text": ""}', "bad_request", "text"),
        (b"\xff\xfe\xfd", "bad_request", None),
        (b"", "bad_request", "text"),
        (b'{"a":' * 3000, "bad_request", None),
    ],
)
def test_a_bad_command_is_refused_by_name(connection, frame, code, field):
    reply = ask(connection, frame)
    assert reply["ok"] is False
    assert reply["error"]["code"] == code
    assert reply["error"].get("field") == field
    assert "\n" not in reply["error"]["message"]
    assert "Traceback" not in reply["error"]["message"]


def test_ten_megabytes_are_too_long(connection):
    frame = json.dumps({"command": "speak", "text": "很" * 3_500_000}, ensure_ascii=False).encode()
    assert len(frame) > 10_000_000
    assert ask(connection, frame)["error"]["code"] == "too_long"


def test_a_long_text_is_too_long_by_its_characters(connection):
    reply = ask(connection, json.dumps({"command": "speak", "text": "a" * 20_001}).encode())
    assert reply["error"]["code"] == "too_long"
    assert reply["error"]["field"] == "text"


@pytest.mark.parametrize(
    "text",
    [
        "\ud800 lone surrogate",
        "\x00\x01\x07\x1b[31m control \x7f",
        "🙂🚗 emoji",
        "一个 Chinese text for an English voice",
        "\u202e right to left \u200b",
        "𠀀𠀁 rare",
    ],
)
def test_odd_text_speaks_or_says_what_it_skipped(quiet_daemon, text):
    with listening(quiet_daemon) as listener, quiet_daemon.client("odd") as client:
        client.call("speak", text=text, id="odd")
        assert listener.wait_for("odd")["event"] == "ended"


def test_text_with_nothing_to_say_ends_at_once_and_reports_it(quiet_daemon):
    with listening(quiet_daemon) as listener, quiet_daemon.client("emoji") as client:
        client.call("speak", text="𪚥", id="nothing")
        event = listener.wait_for("nothing")
        skipped = listener.wait_for("nothing", "skipped")
    assert event["event"] == "ended"
    assert skipped["text"] == "𪚥"


def test_a_sound_in_pieces_is_refused(connection):
    """Else a piece could name a file outside of the sound folder."""
    frame = {"command": "speak", "text": "chirp.flac", "format": "sound", "more": True}
    reply = ask(connection, json.dumps(frame).encode())
    assert reply["error"]["code"] == "bad_request"
    assert reply["error"]["field"] == "more"


def test_rubbish_on_the_event_socket_keeps_no_subscriber_waiting(quiet_daemon):
    context = zmq.Context()
    socket = context.socket(zmq.XSUB)
    socket.connect(quiet_daemon.config.events)
    try:
        for frames in ([b"a", b"b"], [b""], [b"rubbish"], [b"\x01hello.last"]):
            socket.send_multipart(frames)
        assert socket.poll(20_000)
        assert socket.recv_multipart()[0] == b"hello.last"
    finally:
        context.destroy(linger=0)
    with listening(quiet_daemon):
        pass


def test_a_flood_of_subscriptions_starves_nobody(quiet_daemon):
    with quiet_daemon.client() as client, flooded(quiet_daemon.config.events):
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            assert client.call("ping")["ok"]
        client.call("speak", text="All the same.", id="flooded")
        while "terminal" not in (reply := client.call("status", id="flooded")):
            time.sleep(0.05)
        assert reply["terminal"]["event"] == "ended"
    # What has come by now is worked off between other things; a new subscription waits behind it.
    quiet_daemon.wait_until(lambda: publishes(quiet_daemon), 60.0, "the end of the flood")


def publishes(daemon: DaemonProcess) -> bool:
    try:
        with listening(daemon):
            return True
    except DaemonError:
        return False


def test_a_subscriber_that_sends_what_is_no_subscription_is_cut_off(quiet_daemon):
    context = zmq.Context()
    socket = context.socket(zmq.XSUB)
    socket.linger = 0
    monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    socket.connect(quiet_daemon.config.events)
    try:
        socket.send(b"x" * 2000)
        assert monitor.poll(20_000)
    finally:
        socket.disable_monitor()
        monitor.close()
        context.destroy(linger=0)


def test_plain_text_speaks_and_is_answered(quiet_daemon, connection):
    with listening(quiet_daemon) as listener:
        reply = ask(connection, b"Hello there.")
        assert reply["ok"]
        assert listener.wait_for(reply["id"])["event"] == "ended"


def test_msgpack_is_answered_in_msgpack(connection):
    connection.send(msgspec.msgpack.encode({"command": "ping"}))
    assert msgspec.msgpack.decode(connection.recv())["ok"] is True


def test_several_frames_are_refused(connection):
    connection.send_multipart([b'{"command":', b'"ping"}'])
    assert json.loads(connection.recv())["error"]["code"] == "bad_request"


def test_a_full_queue_says_when_to_come_again(quiet_daemon):
    with quiet_daemon.client("many") as client:
        client.call("pause")
        try:
            for _ in range(100):
                client.call("speak", text="One of many.")
            with quiet_daemon.client("late") as late:
                late._control.send(b'{"command": "speak", "text": "too late"}')
                reply = json.loads(late._control.recv())
        finally:
            client.call("cancel", all=True)
            client.call("resume")
    assert reply["error"]["code"] == "queue_full"
    assert reply["error"]["retry_after_ms"] > 0


def test_a_thousand_clients_are_answered(quiet_daemon: DaemonProcess):
    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 2000)
    sockets = []
    try:
        for _ in range(1000):
            socket = context.socket(zmq.DEALER)
            socket.connect(quiet_daemon.config.control)
            socket.send(b'{"command": "ping"}')
            sockets.append(socket)
        answered = sum(bool(s.poll(20_000)) and json.loads(s.recv())["ok"] for s in sockets)
    finally:
        context.destroy(linger=0)
    assert answered == 1000


def test_a_client_that_vanishes_does_not_matter(quiet_daemon):
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.connect(quiet_daemon.config.control)
    for number in range(20):
        body = {"command": "synthesize", "text": f"Number {number}.", "client": "gone"}
        socket.send(json.dumps(body).encode())
    time.sleep(0.2)
    context.destroy(linger=0)
    with quiet_daemon.client() as client:
        assert client.call("ping")["ok"]


def test_a_subscriber_that_never_reads_slows_nobody(quiet_daemon):
    context = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.rcvhwm = 1
    socket.subscribe(b"")
    socket.connect(quiet_daemon.config.events)
    try:
        with quiet_daemon.client("flood") as client:
            client.call("pause")
            for number in range(3000):
                client.call("speak", text="A line.", key="same", id=f"f{number}")
            client.call("cancel")
            client.call("resume")
            begin = time.monotonic()
            client.call("ping")
            assert time.monotonic() - begin < 1.0
    finally:
        context.destroy(linger=0)
