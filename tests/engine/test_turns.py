"""Whose turn it is to get a chunk."""

import pytest

from utterd.engine.turns import Turns


@pytest.fixture
def turns():
    return Turns()


def test_who_has_least_goes_first(turns):
    log = []

    def steps(name, size):
        for number in range(1, 4):
            log.append(name)
            yield number * size

    turns.add(1, steps("a", 10))
    turns.step()
    turns.add(2, steps("b", 4))
    turns.add(1, steps("A", 10))
    while turns:
        turns.step()
    assert "".join(log) == "abbba" + "aAAA"


def test_within_a_step_another_is_stepped_and_never_the_same(turns):
    """As where a network runs, and another thread works meanwhile."""
    log = []

    def steps(name):
        log.append(name)
        if turns.waiting:
            turns.step()
        log.append(name)
        yield 1

    for number, name in enumerate("abc"):
        turns.add(number, steps(name))
    assert turns.waiting
    turns.step()
    assert "".join(log) == "abccba"
    assert len(turns) == 3


def test_a_piece_that_comes_in_the_last_step_of_the_one_before_is_not_lost(turns):
    log = []

    def later():
        log.append("later")
        yield 2

    def first():
        yield 1
        turns.add(1, later())  # where the first piece ends

    turns.add(1, first())
    while turns:
        turns.step()
    assert log == ["later"]


def test_one_that_fails_waits_again(turns):
    def steps():
        raise EOFError
        yield

    turns.add(1, steps())
    with pytest.raises(EOFError):
        turns.step()
    assert turns.waiting
    assert len(turns) == 1
