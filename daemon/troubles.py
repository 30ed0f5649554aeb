"""What works worse than it should, now: each told once when it comes, and once when it goes."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from utterd.daemon import events

log = logging.getLogger("troubles")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is degraded."""

    message: str
    """One line: what happened, to what, and what to do."""
    since_ns: int
    """CLOCK_MONOTONIC."""


class Troubles:
    """All that is degraded, for events, log, `health` and metrics alike.

    Args:
        tell: publishes an event.
    """

    def __init__(self, tell: Callable[[events.Event], None]) -> None:
        self._tell = tell
        self._now: dict[str, Trouble] = {}
        self._found: set[str] = set()
        """Those of the last `look`."""

    def degrade(self, what: str, message: str) -> None:
        """Something is degraded, or is so for another reason now."""
        before = self._now.get(what)
        if before is not None and before.message == message:
            return
        since_ns = before.since_ns if before else time.monotonic_ns()
        self._now[what] = Trouble(message, since_ns)
        log.warning("degraded", extra={"what": what, "reason": message})
        self._tell(events.Degraded(what=what, message=message))

    def recover(self, what: str, message: str = "it is well again") -> None:
        """Something is well again; if it was degraded, that is told."""
        if self._now.pop(what, None) is not None:
            log.info("recovered", extra={"what": what, "reason": message})
            self._tell(events.Recovered(what=what, message=message))

    def look(self, found: Mapping[str, str]) -> None:
        """Compare with the state of things: what is found is degraded, what was before is not.

        Args:
            found: messages by what is degraded; names that `degrade` gets elsewhere are not in it.
        """
        for what in self._found - found.keys():
            self.recover(what)
        for what, message in found.items():
            self.degrade(what, message)
        self._found = set(found)

    def describe(self) -> list[dict[str, object]]:
        """As `health` shows them, the oldest first."""
        now_ns = time.monotonic_ns()
        return [
            {
                "what": what,
                "message": trouble.message,
                "since_s": round((now_ns - trouble.since_ns) / 1e9, 1),
            }
            for what, trouble in sorted(self._now.items(), key=lambda item: item[1].since_ns)
        ]
