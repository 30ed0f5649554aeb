"""The nursery with real workers: forked, killed, stopped, and what each leaves to the others."""

import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.engine.running import PATIENCE_S, Running
from utterd.engine.client import Nursery
from utterd.engine.messages import Finished

HELLO = "Hello there."


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    process = Nursery()
    assert select.select([process], [], [], PATIENCE_S)[0]
    process.receive()
    yield process
    process.close(5.0)


@pytest.fixture
def fork(nursery: Nursery, joe_dir: Path) -> Iterator[Callable[[], Running]]:
    running: list[Running] = []

    def start() -> Running:
        running.append(Running(joe_dir, nursery=nursery, warm=False))
        return running[-1]

    yield start
    for one in running:
        one.close()


def spoken(running: Running, generation: int) -> np.ndarray:
    running.say(generation, HELLO)
    assert isinstance(running.end_of(generation), Finished)
    return running.heard()[generation]


def descriptors(pid: int) -> list[str]:
    """What a process holds open, numbers left out."""
    links = [path.readlink().name for path in Path(f"/proc/{pid}/fd").iterdir()]
    return sorted(re.sub(r"\d+", "", link) for link in links)


def ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_forked_worker_speaks_as_one_with_an_interpreter_of_its_own(fork, joe_dir):
    forked = fork()
    forked.ready()
    own = Running(joe_dir, warm=False)
    try:
        own.ready()
        np.testing.assert_array_equal(spoken(forked, 1), spoken(own, 1))
    finally:
        own.close()
    assert forked.close() == 0


def test_it_is_called_after_its_voice_and_is_another_process(fork, nursery, joe_dir):
    running = fork()
    running.ready()
    process = psutil.Process(running.process.pid)
    assert process.ppid() == nursery.pid
    assert " ".join(process.cmdline()).split() == ["utterd.engine.worker", joe_dir.name]


def test_it_holds_nothing_of_the_nursery_or_of_other_workers_open(fork, nursery):
    first = fork()
    first.ready()
    second = fork()
    second.ready()
    held = [descriptors(running.process.pid) for running in (first, second)]
    assert held[0] == held[1]
    kinds = {name for name in held[1] if name not in ("null", "model.onnx")}
    streams = {Path(f"/proc/{nursery.pid}/fd/{n}").readlink().name for n in (0, 1, 2)}
    kinds -= {re.sub(r"\d+", "", name) for name in streams}
    assert kinds == {"socket:[]", "memfd:utterd-ring (deleted)", "anon_inode:[eventfd]"}
    assert held[1].count("socket:[]") == 1
    assert held[1].count("anon_inode:[eventfd]") == 1


def test_the_nursery_runs_no_thread_and_keeps_nothing_of_workers_that_ended(fork, nursery):
    before = len(descriptors(nursery.pid))
    for _ in range(3):
        running = fork()
        running.ready()
        running.close()
    wait_until(lambda: len(descriptors(nursery.pid)) == before)
    assert psutil.Process(nursery.pid).num_threads() == 1
    assert psutil.Process(nursery.pid).children() == []


def test_twenty_workers_killed_in_a_row_leave_it_as_it_was(fork, nursery):
    before = len(descriptors(nursery.pid))
    for number in range(20):
        running = fork()
        wait_until(lambda one=running: one.process.pid > 0)
        if number % 2:
            time.sleep(0.02 * number)  # in the middle of loading
        running.process.kill()
        running.until_gone()
        assert running.close() == -signal.SIGKILL
    running = fork()
    running.ready()
    assert len(spoken(running, 1)) > 0
    running.close()
    wait_until(lambda: len(descriptors(nursery.pid)) == before)


def test_a_worker_lives_on_when_its_nursery_is_killed(fork, nursery):
    running = fork()
    running.ready()
    nursery.kill()
    nursery.close(5.0)
    assert len(spoken(running, 1)) > 0
    pid = running.process.pid
    assert running.close() is None  # nobody is left to know its exit code
    wait_until(lambda: ended(pid))


def test_a_worker_without_a_nursery_can_still_be_killed(fork, nursery):
    running = fork()
    running.ready()
    pid = running.process.pid
    nursery.kill()
    nursery.close(5.0)
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    assert running.close() is None
    assert time.monotonic() - begin < PATIENCE_S
    wait_until(lambda: ended(pid))


def test_one_that_is_killed_before_it_is_born_never_works(fork, nursery):
    os.kill(nursery.pid, signal.SIGSTOP)
    running = fork()
    assert running.process.pid == 0
    running.process.kill()
    running.until_gone()
    assert running.close() is None
    os.kill(nursery.pid, signal.SIGCONT)
    wait_until(lambda: not psutil.Process(nursery.pid).children())
    other = fork()
    other.ready()


def test_orders_of_a_nursery_that_dies_are_known_to_be_lost(fork, nursery):
    os.kill(nursery.pid, signal.SIGSTOP)
    running = fork()
    nursery.kill()
    nursery.close(5.0)
    running.until_gone()
    assert running.close() is None


def test_both_end_when_the_daemon_is_gone(fork, nursery):
    running = fork()
    running.ready()
    pids = nursery.pid, running.process.pid
    assert nursery.close(5.0) == 0
    assert not ended(pids[1])
    running.close()
    wait_until(lambda: all(ended(pid) for pid in pids))


def test_what_it_does_not_understand_ends_it(nursery):
    nursery.send(Finished(1, 2, 3.0, 4.0))
    wait_until(lambda: ended(nursery.pid))
    assert nursery.close(5.0) == 2


def test_no_library_in_it_reports_to_anybody(fork):
    """ONNX Runtime would keep a database of events, and a thread that uploads them."""
    running = fork()
    running.ready()
    files = psutil.Process(running.process.pid).open_files()
    assert [file.path for file in files if "onnxruntime" in file.path.rsplit("/", 1)[-1]] == []
    threads = [
        path.read_text() for path in Path(f"/proc/{running.process.pid}/task").glob("*/comm")
    ]
    assert len(threads) <= 4, threads
