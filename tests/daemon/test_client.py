"""The client against a daemon that answers late, not at all, or no longer."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from utterd.daemon import client as module
from utterd.daemon.client import Client, DaemonError, is_starting, listens
from utterd.daemon.config import Config, Paths

ANSWER_S = 0.2


class Desk(threading.Thread):
    """Answers pings while it lives, and any other command after a while."""

    def __init__(self, address: str, after_s: float) -> None:
        super().__init__()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.bind(address)
        self._after_s = after_s
        self._begin = time.monotonic()
        self._waiting: list[bytes] = []
        self.pings = 0
        self.answers_pings = True
        self.stopped = False
        self.start()

    def run(self) -> None:
        while not self.stopped:
            if self._socket.poll(10):
                peer, body = self._socket.recv_multipart()
                if json.loads(body)["command"] != "ping":
                    self._waiting.append(peer)
                elif self.answers_pings:
                    self.pings += 1
                    self._socket.send_multipart([peer, b'{"ok": true}'])
            while self._waiting and time.monotonic() - self._begin > self._after_s:
                self._socket.send_multipart([self._waiting.pop(), b'{"ok": true}', b"samples"])
        self._context.destroy(linger=0)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setattr(module, "ANSWER_S", ANSWER_S)
    return Config(paths=Paths(run=str(tmp_path)))


@pytest.fixture
def client(config: Config) -> Iterator[Client]:
    with Client(config) as made:
        yield made


def test_a_reply_that_takes_long_is_waited_for(config: Config, client: Client) -> None:
    desk = Desk(config.control, after_s=5 * ANSWER_S)
    try:
        reply, samples = client.call_with_samples("synthesize", timeout_s=60.0)
    finally:
        desk.stopped = True
        desk.join()
    assert (reply, samples) == ({"ok": True}, b"samples")
    assert desk.pings >= 2


def test_a_daemon_that_is_stuck_is_not_waited_for(config: Config, client: Client) -> None:
    desk = Desk(config.control, after_s=600.0)
    desk.answers_pings = False
    begin = time.monotonic()
    try:
        with pytest.raises(DaemonError, match="no daemon answers") as caught:
            client.call("synthesize", timeout_s=600.0)
    finally:
        desk.stopped = True
        desk.join()
    assert caught.value.code == "unavailable"
    assert time.monotonic() - begin < 60.0


def test_a_daemon_that_is_not_there_is_not_waited_for(client: Client) -> None:
    begin = time.monotonic()
    with pytest.raises(DaemonError, match="utterd serve"):
        client.call("synthesize", timeout_s=600.0)
    assert time.monotonic() - begin < 60.0


def test_a_timeout_ends_the_wait_for_a_daemon_that_lives(config: Config, client: Client) -> None:
    desk = Desk(config.control, after_s=600.0)
    try:
        with pytest.raises(DaemonError, match="no daemon answers"):
            client.call("warmup", timeout_s=3 * ANSWER_S)
    finally:
        desk.stopped = True
        desk.join()


def test_echoes_of_other_subscribers_are_no_events(config: Config, client: Client) -> None:
    with zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
        publisher.linger = 0
        publisher.bind(config.events)

        def greet() -> None:
            while True:
                subscription = publisher.recv()
                if subscription.startswith(b"\x01hello."):
                    publisher.send_multipart([subscription[1:], b"{}"])
                    break
            for topic, body in ((b"hello.other", b"{}"), (b"ended", b'{"event": "ended"}')):
                publisher.send_multipart([topic, body])

        thread = threading.Thread(target=greet)
        thread.start()
        client.subscribe()
        thread.join()
        assert [next(client.events(timeout_s=30.0))] == [{"event": "ended"}]
        assert list(client.events(timeout_s=0.05)) == []


def test_a_refused_value_names_its_field() -> None:
    told = module._refusal(code="bad_request", message="Expected `float` <= 3.0", field="rate")
    assert str(told) == "rate: Expected `float` <= 3.0"
    told = module._refusal(code="bad_request", message="the text is empty", field="text")
    assert str(told) == "the text is empty"
    told = module._refusal(code="queue_full", message="come again", retry_after_ms=5)
    assert (told.code, str(told)) == ("queue_full", "come again")


def test_a_missing_daemon_is_told_soon(tmp_path: Path) -> None:
    """However long an answer may take."""
    config = Config(paths=Paths(run=str(tmp_path)))
    begin = time.monotonic()
    with Client(config, starting_s=0.0) as client:
        with pytest.raises(DaemonError, match="no daemon answers"):
            client.call("synthesize", timeout_s=600.0)
        with pytest.raises(DaemonError, match="no daemon publishes"):
            client.subscribe()
    assert time.monotonic() - begin < 4.0


def test_what_a_killed_daemon_left_is_no_daemon(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("999999999\n")
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(tmp_path / "control.sock"))
    assert not listens(tmp_path)
    assert not is_starting(tmp_path)
    (tmp_path / "lock").write_text(f"{os.getpid()}\n")
    assert is_starting(tmp_path), "it is about to take the socket over"


def test_a_daemon_that_takes_nothing_is_there_all_the_same(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(tmp_path / "control.sock"))
        busy.listen(1)
        waiting = []
        for _ in range(5):  # more than its backlog holds
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(str(tmp_path / "control.sock"))
            assert listens(tmp_path)
        for one in waiting:
            one.close()


def test_a_daemon_of_others_is_no_missing_one(tmp_path: Path) -> None:
    """Asked for by a user who may not talk to it."""
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(tmp_path / "control.sock"))
        theirs.listen(1)
        (tmp_path / "control.sock").chmod(0)
        child = os.fork()
        if child == 0:
            if os.geteuid() == 0:  # who may do everything
                os.setuid(65534)
            try:
                listens(tmp_path)
            except DaemonError as error:
                os._exit(0 if "adduser" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_daemon_that_starts_meanwhile_is_waited_for(tmp_path: Path) -> None:
    """Past the time for one that is not there: it holds its lock."""
    config = Config(paths=Paths(run=str(tmp_path)))
    desks: list[Desk] = []
    (tmp_path / "lock").write_text(f"{os.getpid()}\n")
    starting = threading.Timer(1.0, lambda: desks.append(Desk(config.control, after_s=0.0)))
    starting.start()
    with Client(config, starting_s=0.0) as client:
        assert client.call("warmup", timeout_s=20.0)["ok"]
    starting.join()
    desks[0].stopped = True
    desks[0].join()


def test_a_daemon_of_which_nothing_is_seen_yet_is_waited_for_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config(paths=Paths(run=str(tmp_path)))
    desks: list[Desk] = []
    starting = threading.Timer(1.0, lambda: desks.append(Desk(config.control, after_s=0.0)))
    starting.start()
    with Client(config, starting_s=20.0) as client:
        assert client.call("warmup", timeout_s=20.0)["ok"]
    starting.join()
    desks[0].stopped = True
    desks[0].join()
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "no daemon is there yet"
    ]
