"""Limits on the memory of processes: who is over its own, and whether starting it anew would help.

Nothing is ended here. A process over its limit is started anew when it has nothing to do; one that
needs more than the limit from its start would be for ever, so it is left alone, and that is told.
"""

import logging
import os
import time
from pathlib import Path

log = logging.getLogger("memory")

SETTLING_NS = 3_000_000_000
"""What a process has so long after it was ready, it needs."""


def rss_bytes() -> int:
    """Resident memory of this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Ceiling:
    """The limit of one process, over all its lives.

    Args:
        key: its name in `[limits]`.
        limit_mb: 0 for none.
    """

    def __init__(self, key: str, limit_mb: int) -> None:
        self.problem = ""
        """One line for `health`: it is over its limit, and what comes of it."""
        self._key = key
        self._limit_mb = limit_mb
        self._life = 0
        self._needs_bytes = 0

    def look(self, who: str, ready_ns: int, rss_bytes: int) -> str:
        """See whether starting it anew is called for.

        Args:
            who: for the log.
            ready_ns: when its present life was ready, CLOCK_MONOTONIC.
            rss_bytes: what it has now.

        Returns:
            The reason; "" if there is none.
        """
        if not self._limit_mb:
            return ""
        if self._life != ready_ns:
            self._life, self._needs_bytes, self.problem = ready_ns, 0, ""
        if time.monotonic_ns() - ready_ns < SETTLING_NS or not self._needs_bytes:
            self._needs_bytes = rss_bytes
            return ""
        limit = f"limits.{self._key} = {self._limit_mb}"
        if self._needs_bytes > self._limit_mb * 1_000_000:
            needs = f"needs {self._needs_bytes / 1e6:.0f} MB from its start: {limit} is too low"
            self._tell(who, f"it {needs} and does nothing")
            return ""
        if rss_bytes <= self._limit_mb * 1_000_000:
            self.problem = ""
            return ""
        reason = f"its {rss_bytes / 1e6:.0f} MB are over {limit}"
        self._tell(who, f"{reason}; it is started anew when it has nothing to do")
        return reason

    def _tell(self, who: str, problem: str) -> None:
        if not self.problem:  # said once, and not anew with every MB
            log.warning("memory limit", extra={"child": who, "reason": problem})
            self.problem = problem
