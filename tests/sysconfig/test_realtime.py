"""Real calls to the real kernel, in children, with and without the right to them."""

import multiprocessing
import os
import resource
import subprocess
import sys
import threading

import pytest

from tests.sysconfig import machines
from utterd.sysconfig import realtime
from utterd.sysconfig.client import Seats
from utterd.sysconfig.config import PROFILES, Config
from utterd.sysconfig.sysfs import Sysfs

ALLOWED = frozenset(os.sched_getaffinity(0))


def in_child(work):
    """Run in a forked child and return what it returns."""
    context = multiprocessing.get_context("fork")
    near, far = context.Pipe()

    def run():
        far.send(work())

    process = context.Process(target=run)
    process.start()
    answer = near.recv()
    process.join()
    return answer


def without_rights(work):
    """The same as an ordinary user with no limits raised."""

    def run():
        resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        return work()

    return in_child(run)


def test_refusals_are_answers_with_a_reason_and_a_remedy():
    grants = without_rights(
        lambda: [realtime.set_fifo(10), realtime.lock_memory(), realtime.hold_wake_up(20)[0]]
    )
    assert [grant.granted for grant in grants] == [False, False, False]
    fifo, memory, wake_up = grants
    assert "LimitRTPRIO" in fifo.reason
    assert fifo.got == "SCHED_OTHER 0"
    assert "LimitMEMLOCK" in memory.reason
    assert memory.got == "0 KiB locked"
    assert "utterd-tune" in wake_up.reason


def test_what_is_told_is_what_the_kernel_does():
    """Granted or not depends on the machine; the answer must agree with it either way."""

    def work():
        grant = realtime.set_fifo(10)
        policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
        return grant, policy == os.SCHED_FIFO

    grant, is_fifo = in_child(work)
    assert grant.granted == is_fifo
    assert grant.got == ("SCHED_FIFO 10" if is_fifo else "SCHED_OTHER 0")


def test_children_of_a_real_time_thread_are_ordinary():
    def work():
        grant = realtime.set_fifo(10)
        inner = in_child(lambda: os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK)
        return grant.granted, inner

    _, inner = in_child(work)
    assert inner == os.SCHED_OTHER


def test_memory_is_locked_and_told():
    def work():
        grant = realtime.lock_memory()
        return grant, resource.getrlimit(resource.RLIMIT_MEMLOCK)

    grant, _ = in_child(work)
    if grant.granted:
        assert not grant.got.startswith("0 KiB")
    else:
        assert "LimitMEMLOCK" in grant.reason


def test_affinity_of_every_thread_of_a_child_from_outside():
    code = (
        "import sys, threading; e = threading.Event();"
        "threading.Thread(target=e.wait).start();"
        "print('up', flush=True); sys.stdin.read(); e.set()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        child.stdout.readline()
        one = frozenset({min(ALLOWED)})
        grant = realtime.set_affinity(child.pid, one)
        assert grant.granted
        assert grant.got == str(min(ALLOWED))
        threads = realtime.threads(child.pid)
        assert len(threads) == 2
        assert {thread.cpus for thread in threads} == {one}
        assert not any(thread.realtime for thread in threads)
    finally:
        child.communicate()
    assert not realtime.set_affinity(child.pid, one).granted
    assert realtime.threads(child.pid) == []


def test_a_core_that_is_not_there_is_refused():
    grant = in_child(lambda: realtime.set_affinity(0, frozenset({1023})))
    assert not grant.granted
    assert "EINVAL" in grant.reason


def test_a_node_is_preferred_read_back_and_given_up():
    def work():
        with realtime.spawning_on_node(0) as grant:
            inside = in_child(lambda: realtime.prefer_node(0).got)
        return grant, inside, realtime.prefer_node(-1)

    grant, inside, after = in_child(work)
    if "ENOSYS" in grant.reason:
        assert grant.got == "default", "a kernel without NUMA"
    else:
        assert grant.granted
        assert inside == "node 0"
        assert (after.got, after.granted) == ("default", True)


def test_a_node_that_is_not_there():
    assert not in_child(lambda: realtime.prefer_node(77)).granted


def test_wake_up_is_held_only_while_open():
    def work():
        grant, handle = realtime.hold_wake_up(20)
        if handle >= 0:
            os.close(handle)
        return grant, handle

    grant, handle = in_child(work)
    assert grant.granted == (handle >= 0)
    if grant.granted:
        assert int(grant.got.split()[0]) <= 20


def test_seats_by_role(tmp_path):
    root = machines.build(tmp_path, cores=max(ALLOWED) + 1)
    seats = Seats(Config(PROFILES["kiosk"], ALLOWED), Sysfs(root))
    assert "player on CPU" in seats.describe()
    with seats.spawning():
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        grants = [*seats.seat("player", child.pid), *seats.seat("worker", child.pid)]
        assert all(grant.granted for grant in grants)
    finally:
        child.communicate()


def test_the_desktop_seats_nobody():
    seats = Seats(Config(PROFILES["desktop"]))
    assert seats.seat("player", os.getpid()) == []
    with seats.spawning() as grant:
        assert grant is None
    assert "desktop" in seats.describe()


@pytest.mark.parametrize("tid", [0, threading.get_native_id()])
def test_threads_of_this_process(tid):
    found = realtime.threads(tid)
    assert threading.get_native_id() in [thread.tid for thread in found]
