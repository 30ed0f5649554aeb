"""The daemon started anew for its own memory: when that is due, and what it leaves to the next."""

import logging
from pathlib import Path

from utterd.daemon.handover import Handover, leave, take
from utterd.daemon.memory import Ceiling, rss_bytes
from utterd.daemon.records import Records

log = logging.getLogger("renewal")

IDLE_CHECKS = 5
"""So many in a row found nothing to do before it is started anew: it is deaf until its voice is
loaded again."""


class Renewal:
    """Of one daemon by the next.

    Args:
        file: what one leaves to the other.
        limit_mb: of this process; 0 for none.
        began_ns: when this daemon was started, CLOCK_MONOTONIC.
    """

    def __init__(self, file: Path, limit_mb: int, began_ns: int) -> None:
        self.reason = ""
        """Why another daemon should take the place of this one; "" if none should."""
        self.count = 0
        """How many before this one were started anew, one after the other."""
        self.because = ""
        """Why the one before ended, where it ended for that."""
        self.ceiling = Ceiling("daemon_rss_mb", limit_mb)
        self._file = file
        self._began_ns = began_ns
        self._idle_checks = 0

    def is_due(self, *, idle: bool) -> bool:
        """See whether it has come to that now; `reason` then says why. Called once a second.

        Args:
            idle: whether nothing sounds, waits, is held or being made, for anyone.
        """
        self._idle_checks = self._idle_checks + 1 if idle else 0
        reason = self.ceiling.look("daemon", self._began_ns, rss_bytes())
        if not reason or self._idle_checks < IDLE_CHECKS or self.reason:
            return False
        self.reason = reason
        return True

    def put_off(self) -> None:
        """Something was asked for in the last moment."""
        self.reason = ""

    def hand_over(self, records: Records, *, gain: float, voice: str) -> None:
        """Write down for the next daemon what clients rely on; see `Handover`."""
        handover = Handover.of(
            records, reason=self.reason, renewals=self.count + 1, gain=gain, voice=voice
        )
        leave(self._file, handover)

    def take_back(self) -> None:
        """No other daemon follows after all: leave nothing, it holds what was said."""
        self._file.unlink(missing_ok=True)

    def take_over(self) -> Handover | None:
        """What the daemon before this one has written down; None if nothing."""
        handover = take(self._file)
        if handover is not None:
            log.info("taken over", extra={"reason": handover.reason, "renewals": handover.renewals})
            self.count, self.because = handover.renewals, handover.reason
        return handover
