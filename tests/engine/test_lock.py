"""The lock of a worker's threads changes hands where it is released, and nowhere else."""

import threading

import pytest

from utterd.engine.lock import GlobalLock

LONG_S = 60.0


@pytest.fixture
def lock():
    return GlobalLock()


def other(lock, work):
    """A thread that does something while it holds the lock."""

    def run():
        with lock:
            work()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_it_is_released_inside_and_held_again_after(lock):
    worked = threading.Event()
    with lock:
        thread = other(lock, worked.set)
        assert not worked.wait(0.05)
        with lock.released():
            assert worked.wait(LONG_S)
        again = other(lock, worked.clear)
        assert worked.is_set()
    for one in (thread, again):
        one.join()
    assert not worked.is_set()


def test_what_fails_while_it_is_released_leaves_it_held(lock):
    worked = threading.Event()
    with lock:
        with pytest.raises(ValueError, match="x"), lock.released():
            raise ValueError("x")
        thread = other(lock, worked.set)
        assert not worked.wait(0.05)
    thread.join()
    assert worked.is_set()


def test_kept_it_is_not_released(lock):
    worked = threading.Event()
    with lock:
        with lock.kept(), lock.released():
            thread = other(lock, worked.set)
            assert not worked.wait(0.05)
        with lock.released():
            assert worked.wait(LONG_S)
    thread.join()


def test_who_comes_back_while_it_is_kept_waits(lock):
    inside, go, back = threading.Event(), threading.Event(), threading.Event()

    def network():
        with lock.released():
            inside.set()
            assert go.wait(LONG_S)
        back.set()

    thread = other(lock, network)
    assert inside.wait(LONG_S)
    with lock:
        with lock.kept():
            go.set()
            with lock.released():
                assert not back.wait(0.05)
        with lock.released():
            assert back.wait(LONG_S)
    thread.join()


def test_one_that_waits_is_woken(lock):
    log = []

    def wait():
        log.append("waits")
        lock.wait()
        log.append("works")

    thread = other(lock, wait)
    while not log:
        threading.Event().wait(0.001)
    with lock:
        lock.wake()
        assert log == ["waits"]
    thread.join()
    assert log == ["waits", "works"]
