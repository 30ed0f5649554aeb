"""`utterd top` in a pipe and in a terminal."""

import os
import pty
import select
import signal
import termios
import time
from contextlib import contextmanager

import pytest

from tests.daemon_process import DaemonProcess
from tests.e2e.command import PATIENCE_S, at, done, run, spawn
from utterd.daemon import top


@pytest.mark.parametrize("options", [(), ("--once",)])
def test_top_into_a_pipe_prints_once(quiet_daemon, options):
    with quiet_daemon.client() as client:
        client.call("synthesize", text="Warm.", timeout_s=PATIENCE_S)
    text = done(run("top", *options, *at(quiet_daemon)))
    assert "\x1b" not in text
    assert text.startswith("utterd   can be heard")
    for wanted in ("null", "joe-us", "closed", "underruns", "waiting", " failed"):
        assert wanted in text


@contextmanager
def terminal():
    """A terminal of 24 rows and 100 columns: our end, and the programs'."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def read_until(ours: int, wanted: bytes, text: bytes = b"") -> bytes:
    deadline = time.monotonic() + PATIENCE_S
    while wanted not in text:
        assert time.monotonic() < deadline, text
        if select.select([ours], [], [], 0.1)[0]:
            text += os.read(ours, 65536)
    return text


@pytest.mark.parametrize(
    ("end", "code"),
    [(b"q", 0), (b"\x03", 0), (signal.SIGTERM, 143)],
    ids=["q", "Ctrl-C", "SIGTERM"],
)
def test_top_is_live_in_a_terminal_and_gives_it_back(quiet_daemon, end, code):
    with terminal() as (ours, theirs):
        before = termios.tcgetattr(theirs)
        process = spawn(
            *("top", *at(quiet_daemon)),
            under=("setsid", "--ctty"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        try:
            text = read_until(ours, top.TO_END_OF_SCREEN.encode())
            assert text.startswith(top.ENTER.encode())
            assert b"can be heard" in text
            read_until(ours, top.HOME.encode())  # drawn again
            assert not termios.tcgetattr(theirs)[3] & termios.ICANON
            if isinstance(end, bytes):
                os.write(ours, end)
            else:
                process.send_signal(end)
            read_until(ours, top.LEAVE.encode())
            assert process.wait(PATIENCE_S) == code
            assert termios.tcgetattr(theirs) == before
        finally:
            process.kill()
            process.wait()


def test_top_goes_on_when_the_daemon_is_started_again(tmp_path):
    daemon = DaemonProcess(
        *(tmp_path / "run", tmp_path / "data"),
        environment={"UTTERD_AUDIO_SINK": "null"},
        wait=False,
    )
    with daemon.client() as client:
        client.call("ping", timeout_s=PATIENCE_S)
    try:
        with terminal() as (ours, theirs):
            process = spawn("top", *at(daemon), stdin=theirs, stdout=theirs, stderr=theirs)
            try:
                read_until(ours, b"be heard")
                daemon.process.kill()
                daemon.process.wait()
                read_until(ours, b"no daemon answers")
                daemon.start(wait=False)
                read_until(ours, b"be heard")
                os.write(ours, b"q")
                read_until(ours, top.LEAVE.encode())
                assert process.wait(PATIENCE_S) == 0
            finally:
                process.kill()
                process.wait()
    finally:
        daemon.stop()


def test_top_clips_to_the_columns_there_are():
    assert top.clip("abc", 3) == "abc"
    assert top.clip("abcd", 3) == "abc"
    assert top.clip("你好吗", 5) == "你好"
