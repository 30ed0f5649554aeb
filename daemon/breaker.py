"""A circuit breaker in front of a voice whose worker keeps failing."""

from enum import Enum

FAILURES = 3
"""In a row; then it opens."""
FIRST_WAIT_NS = 2_000_000_000
LONGEST_WAIT_NS = 60_000_000_000


class State(Enum):
    """Of a breaker."""

    CLOSED = "closed"
    """All is well: everything passes."""
    OPEN = "open"
    """Nothing passes until the wait is over."""
    HALF_OPEN = "half open"
    """One try is under way; its outcome decides."""


class Stimulus(Enum):
    """What can happen to a breaker."""

    FAILED_OFTEN = "failed often"
    WAITED = "waited"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


TRANSITIONS: dict[tuple[State, Stimulus], State] = {
    (State.CLOSED, Stimulus.FAILED_OFTEN): State.OPEN,
    (State.CLOSED, Stimulus.FAILED): State.CLOSED,
    (State.CLOSED, Stimulus.SUCCEEDED): State.CLOSED,
    (State.OPEN, Stimulus.WAITED): State.HALF_OPEN,
    (State.OPEN, Stimulus.FAILED): State.OPEN,
    (State.OPEN, Stimulus.SUCCEEDED): State.CLOSED,
    (State.HALF_OPEN, Stimulus.SUCCEEDED): State.CLOSED,
    (State.HALF_OPEN, Stimulus.FAILED): State.OPEN,
}


class Breaker:
    """Counts failures in a row; waits twice as long after each try that fails."""

    def __init__(self) -> None:
        self.state = State.CLOSED
        self._failures = 0
        self._wait_ns = FIRST_WAIT_NS
        self._open_until_ns = 0

    def blocked_ns(self, now_ns: int) -> int:
        """How long nothing passes yet; 0 lets this one pass (as the try, where it was open)."""
        if self.state is State.OPEN and now_ns >= self._open_until_ns:
            self._apply(Stimulus.WAITED)
            return 0
        if self.state is State.CLOSED:
            return 0
        return max(self._open_until_ns - now_ns, 1_000_000)

    def failed(self, now_ns: int) -> None:
        """The worker died or could not load."""
        self._failures += 1
        if self.state is State.HALF_OPEN:
            self._wait_ns = min(2 * self._wait_ns, LONGEST_WAIT_NS)
            self._apply(Stimulus.FAILED)
        elif self.state is State.CLOSED and self._failures >= FAILURES:
            self._apply(Stimulus.FAILED_OFTEN)
        else:
            self._apply(Stimulus.FAILED)
            return
        self._open_until_ns = now_ns + self._wait_ns

    def succeeded(self) -> None:
        """The worker has spoken something to its end."""
        self._failures = 0
        self._wait_ns = FIRST_WAIT_NS
        self._apply(Stimulus.SUCCEEDED)

    def _apply(self, stimulus: Stimulus) -> None:
        self.state = TRANSITIONS[self.state, stimulus]
