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


def test_who_has_a_second_ahead_waits_for_those_who_came_before(turns):
    log = []

    def steps(name):
        for number in range(1, 5):
            log.append(name)
            yield number * 12_000

    for number, name in enumerate("abc"):
        turns.add(number, steps(name))
    for _ in range(7):
        turns.step()
    turns.add(3, steps("d"))
    while turns:
        turns.step()
    assert "".join(log) == "abcabc" + "a" + "dd" + "a" + "bbccdd"


def test_nobody_waits_for_ever_while_new_ones_come(turns):
    """Each that ends is followed by the next, as where clients ask again at once."""
    begun, waited = {}, []
    steps_taken = 0

    def steps(number):
        for made in range(1, 11):
            yield made * 9_000
        waited.append(steps_taken - begun[number])

    for number in range(200):
        begun[number] = steps_taken
        turns.add(number, steps(number))
        while len(turns) == 20:
            turns.step()
            steps_taken += 1
    assert len(waited) == 181
    # Those before it, to their end, and a second of each that came later.
    assert max(waited) <= 20 * 11 + 40 * 3


def test_a_long_one_goes_on_while_short_ones_come_without_end(turns):
    ended = []

    def steps(number, count):
        for made in range(1, count + 1):
            yield made * 9_000
        ended.append(number)

    turns.add(0, steps(0, 20))
    number = 0
    while 0 not in ended:
        while len(turns) < 4:  # none has ever a second
            number += 1
            turns.add(number, steps(number, 2))
        turns.step()
        assert number < 200
    assert ended.index(0) > 50  # and it doesn't get in their way


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
