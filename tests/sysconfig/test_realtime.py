"""Real calls to the real kernel, in children."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

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
        threads = [int(path.name) for path in Path(f"/proc/{child.pid}/task").iterdir()]
        assert len(threads) == 2
        assert all(os.sched_getaffinity(thread) == one for thread in threads)
    finally:
        child.communicate()
    assert not realtime.set_affinity(child.pid, one).granted


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
