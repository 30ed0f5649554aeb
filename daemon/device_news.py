"""What is told of the device: each change by an event, and in the log what is new about it."""

import logging
import time
from collections.abc import Callable

from utterd.audio import messages as audio
from utterd.daemon import events

log = logging.getLogger("device")

REMIND_NS = 600_000_000_000
"""What is still as it was is logged again after so long."""


class DeviceNews:
    """Tells of one device, open or lost.

    Args:
        emit: publishes an event.
    """

    def __init__(self, emit: Callable[[events.Event], None]) -> None:
        self._emit = emit
        self._was_lost = False
        self._logged = "", 0
        """Why it is lost, as last logged, and when: the player tries again and again."""

    def opened(self, opened: audio.Opened, *, woken: bool) -> None:
        """It is open.

        Args:
            opened: as what.
            woken: it had only been let go.
        """
        log.log(
            logging.DEBUG if woken else logging.INFO,
            "device open",
            extra={
                "device": opened.device,
                "rate": opened.rate,
                "latency_ms": round(opened.latency_ms, 1),
                "realtime": opened.realtime,
            },
        )
        if self._was_lost:
            self._emit(
                events.DeviceBack(
                    device=opened.device, rate=opened.rate, latency_ms=opened.latency_ms
                )
            )
        self._was_lost, self._logged = False, ("", 0)

    def lost(self, lost: audio.DeviceLost) -> None:
        """It is lost, or still is."""
        now_ns = time.monotonic_ns()
        before, logged_ns = self._logged
        if lost.message != before or now_ns - logged_ns > REMIND_NS:
            log.warning("device lost", extra={"device": lost.device, "reason": lost.message})
            self._logged = lost.message, now_ns
        self._was_lost = True
        self._emit(
            events.DeviceLost(
                device=lost.device,
                reason=lost.reason,
                message=lost.message,
                retry_ms=lost.retry_ms,
            )
        )
