"""The parts around the player: its noisy standard error, its deadline, its channel."""

import select
import socket
import subprocess
import sys

import msgspec
import pytest

from utterd.audio.channel import Channel
from utterd.audio.deadline import EXIT_HUNG
from utterd.audio.messages import Configure, Shutdown, ToPlayer

MILLION_LINES = """
import os, time
from utterd.audio.noise import StderrLimiter
limiter = StderrLimiter()
begin = time.monotonic()
for i in range(1_000_000):
    try:
        os.write(2, b"Expression 'x' failed in 'pa_linux_alsa.c', line: 3965\\n")
    except BlockingIOError:
        pass
limiter.pass_on()
limiter.finish()
"""
HANGS = """
import time
from utterd.audio.deadline import Deadline
with Deadline(0.05, lambda: print("last words", flush=True)):
    time.sleep(60)
"""
DOES_NOT_HANG = """
import time
from utterd.audio.deadline import Deadline
with Deadline(0.2, lambda: print("last words", flush=True)):
    pass
time.sleep(0.5)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_million_lines_are_a_few_and_a_count() -> None:
    lines = run(MILLION_LINES).stderr.splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("Expression 'x' failed")
    assert lines[-1].startswith("utterd player: ")
    assert lines[-1].endswith("lines of the sound library left out")


def test_a_call_that_hangs_ends_the_process_with_last_words() -> None:
    ended = run(HANGS)
    assert (ended.returncode, ended.stdout) == (EXIT_HUNG, "last words\n")


def test_a_call_that_comes_back_in_time_does_not() -> None:
    ended = run(DOES_NOT_HANG)
    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.fixture
def ends():
    """Two ends of a channel: the first reads what the player reads."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel, other = Channel(ours, ToPlayer), Channel(theirs, ToPlayer)
    yield channel, other
    channel.close()
    other.close()


def test_messages_arrive_whole_and_in_order(ends) -> None:
    channel, other = ends
    assert channel.receive() == []
    for message in (Configure(device="spk"), Shutdown()):
        other.send(message)
    assert channel.receive() == [Configure(device="spk"), Shutdown()]
    assert not channel.closed


def test_the_end_is_noticed_after_what_was_said(ends) -> None:
    channel, other = ends
    other.send(Shutdown())
    other.close()
    assert channel.receive() == [Shutdown()]
    assert channel.closed


def test_nobody_waits_for_a_slow_reader(ends) -> None:
    channel, other = ends
    sent = 0
    while not other.blocked:
        other.send(Configure(device=str(sent)))
        sent += 1
    for _ in range(100):
        other.send(Configure(device=str(sent)))
        sent += 1
    got = []
    while len(got) < sent:
        select.select([channel], [], [], 10)
        got += channel.receive()
        other.flush()
    assert [int(message.device) for message in got] == [*range(sent)]


def test_what_is_no_message_is_an_error(ends) -> None:
    channel, other = ends
    other._socket.send(b"\xc1 nonsense")
    with pytest.raises(msgspec.DecodeError):
        channel.receive()


def test_sending_to_nobody_closes(ends) -> None:
    channel, other = ends
    channel.close()
    other.send(Shutdown())
    assert other.closed


RUNS_WILD = """
import ctypes, os, threading, time
from utterd.audio import _callback
from utterd.audio.ring import Ring
ring, wake = Ring.create(), os.eventfd(0)
core = _callback.Core(ring.memory, wake)
core.configure(48000, 2, 480, 5.0, 100.0, 10.0, False, 1.0)
times = (ctypes.c_double * 3)(0.0, 0.0, 0.01)
output = (ctypes.c_float * 960)()
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong,
                        ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p)
def audio_thread():
    kind(_callback.CALLBACK)(None, ctypes.addressof(output), 480, ctypes.addressof(times), 0,
                             core.address)
    granted = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
    assert granted == core.realtime
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        pass
    assert core.runaway == granted
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    assert ring.heartbeat_ns > 0
    print("calm", flush=True)
thread = threading.Thread(target=audio_thread)
thread.start()
thread.join()
"""


def test_an_audio_thread_that_runs_wild_loses_its_priority() -> None:
    ended = run(RUNS_WILD)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "calm\n", "")
