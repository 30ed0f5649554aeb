"""systemd's readiness protocol, on a real datagram socket."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from utterd.daemon.notify import notify, watchdog_seconds


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def test_one_message_is_one_datagram(manager: socket.socket) -> None:
    notify("READY=1", "STATUS=好")
    notify("WATCHDOG=1")
    assert manager.recv(100) == "READY=1\nSTATUS=好".encode()
    assert manager.recv(100) == b"WATCHDOG=1"


def test_an_abstract_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"utterd-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        listening.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        notify("READY=1")
        assert listening.recv(100) == b"READY=1"


def test_without_a_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    notify("READY=1")


def test_a_manager_that_does_not_read_holds_nobody_up(manager: socket.socket) -> None:
    for _ in range(300):
        notify("STATUS=" + "x" * 4000)
    assert manager.recv(5000).startswith(b"STATUS=x")


def test_the_watchdog_s_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    assert watchdog_seconds() == 0.0
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    assert watchdog_seconds() == 3.0
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert watchdog_seconds() == 3.0
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert watchdog_seconds() == 0.0
