"""Publishes events, each at the time it speaks of, and in order for each utterance."""

import heapq
import time
from collections.abc import Callable

import msgspec

from utterd.daemon import events


class Publisher:
    """Numbers events and holds back those whose time has not come.

    Args:
        send: gets topic and body of every event when it is due.
    """

    def __init__(self, send: Callable[[bytes, bytes], None]) -> None:
        self._send = send
        self._sequence = 0
        self._entered = 0
        self._held: list[tuple[int, int, events.Event]] = []
        self._latest: dict[tuple[str, str], int] = {}

    def publish(self, event: events.Event, at_ns: int = 0) -> None:
        """Publish at `at_ns` (CLOCK_MONOTONIC), at once where that has passed.

        An event never overtakes an earlier one of its utterance.
        """
        now_ns = time.monotonic_ns()
        self.release(now_ns)
        key = (event.client, event.id)
        at_ns = max(at_ns, self._latest.get(key, 0))
        if at_ns <= now_ns:
            self._now(event)
            return
        self._entered += 1
        self._latest[key] = at_ns
        heapq.heappush(self._held, (at_ns, self._entered, event))

    def next_ns(self) -> int:
        """When `release` is due; 0 if nothing is held."""
        return self._held[0][0] if self._held else 0

    def release(self, now_ns: int) -> None:
        """Publish what is due."""
        while self._held and self._held[0][0] <= now_ns:
            at_ns, _, event = heapq.heappop(self._held)
            key = (event.client, event.id)
            if self._latest.get(key) == at_ns:
                del self._latest[key]
            self._now(event)

    def flush(self) -> None:
        """Publish everything now: the daemon ends."""
        self.release(1 << 63)

    def _now(self, event: events.Event) -> None:
        self._sequence += 1
        stamped = msgspec.structs.replace(
            event, sequence=self._sequence, monotonic_ns=time.monotonic_ns()
        )
        self._send(*events.encode(stamped))
