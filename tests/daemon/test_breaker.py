"""The circuit breaker: it opens, tries, closes, and waits longer each time."""

import itertools

from utterd.daemon.breaker import (
    FAILURES,
    FIRST_WAIT_NS,
    LONGEST_WAIT_NS,
    TRANSITIONS,
    Breaker,
    State,
    Stimulus,
)


def opened(at_ns: int) -> Breaker:
    breaker = Breaker()
    for _ in range(FAILURES):
        assert breaker.blocked_ns(at_ns) == 0
        breaker.failed(at_ns)
    assert breaker.state is State.OPEN
    return breaker


def test_it_opens_after_failures_in_a_row_and_says_for_how_long():
    assert opened(100).blocked_ns(100) == FIRST_WAIT_NS
    assert opened(0).blocked_ns(FIRST_WAIT_NS - 5_000_000) == 5_000_000


def test_a_success_in_between_starts_the_count_anew():
    breaker = Breaker()
    for _ in range(10):
        for _ in range(FAILURES - 1):
            breaker.failed(0)
        breaker.succeeded()
    assert breaker.state is State.CLOSED


def test_one_try_passes_after_the_wait_and_its_success_closes():
    breaker = opened(0)
    assert breaker.blocked_ns(FIRST_WAIT_NS) == 0
    assert breaker.state is State.HALF_OPEN
    assert breaker.blocked_ns(FIRST_WAIT_NS) > 0
    breaker.succeeded()
    assert breaker.blocked_ns(FIRST_WAIT_NS) == 0


def test_every_failed_try_doubles_the_wait_up_to_a_limit():
    breaker, now_ns, waits = opened(0), 0, []
    for _ in range(8):
        now_ns += breaker.blocked_ns(now_ns)
        assert breaker.blocked_ns(now_ns) == 0
        breaker.failed(now_ns)
        waits.append(breaker.blocked_ns(now_ns))
    assert waits[:3] == [2 * FIRST_WAIT_NS, 4 * FIRST_WAIT_NS, 8 * FIRST_WAIT_NS]
    assert all(a <= b for a, b in itertools.pairwise(waits))
    assert waits[-1] == LONGEST_WAIT_NS


def test_every_state_can_be_left_towards_closed():
    assert {state for (state, _), to in TRANSITIONS.items() if to is State.CLOSED} == set(State)
    assert {stimulus for _, stimulus in TRANSITIONS} == set(Stimulus)
