"""How late a thread wakes up: absolute deadlines, like cyclictest's.

What is measured includes Python's way back from the call (about a microsecond), which
`floor_us` tells apart.
"""

import ctypes
import ctypes.util
import gc
import os
import threading
import time
from dataclasses import dataclass

_ABSOLUTE = 1
PRIORITY = 80


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


@dataclass(frozen=True, slots=True)
class Wakeups:
    """Lateness of wake-ups on one core, in microseconds."""

    count: int
    median_us: float
    p99_us: float
    max_us: float
    floor_us: float
    """What two readings of the clock and a call cost without any sleep."""
    cpu: int
    """-1 where the kernel chose."""
    realtime: bool
    """Whether the thread ran as SCHED_FIFO."""


def measure(seconds: float = 2.0, cpu: int = -1, period_us: int = 1000) -> Wakeups:
    """Sleep to absolute deadlines and tell how late each wake-up came.

    Args:
        seconds: How long.
        cpu: Core to run on; -1 leaves it to the kernel.
        period_us: Time between deadlines.
    """
    late: list[int] = []
    placed: list[tuple[int, bool]] = []
    period = period_us * 1000
    count = max(1, int(seconds * 1e9 / period))
    thread = threading.Thread(target=_run, args=(late, placed, count, period, cpu))
    collecting = gc.isenabled()
    gc.disable()
    try:
        thread.start()
        thread.join()
    finally:
        if collecting:
            gc.enable()
    late.sort()
    return Wakeups(
        count=len(late),
        median_us=late[len(late) // 2] / 1000,
        p99_us=late[min(len(late) - 1, len(late) * 99 // 100)] / 1000,
        max_us=late[-1] / 1000,
        floor_us=_floor() / 1000,
        cpu=placed[0][0],
        realtime=placed[0][1],
    )


def _run(
    late: list[int], placed: list[tuple[int, bool]], count: int, period: int, cpu: int
) -> None:
    placed.append(_place(cpu))
    sleep = _clock_nanosleep()
    now = time.monotonic_ns
    deadline = now() + period
    for _ in range(count):
        seconds, nanoseconds = divmod(deadline, 1_000_000_000)
        until = _Timespec(seconds, nanoseconds)
        while sleep(time.CLOCK_MONOTONIC, _ABSOLUTE, ctypes.byref(until), None):
            pass  # a signal came in between: the deadline is absolute, so go on
        woken = now()
        late.append(woken - deadline)
        # A wake-up that misses whole periods counts once; the next one starts afresh.
        deadline = max(deadline + period, woken + period // 2)


def _place(cpu: int) -> tuple[int, bool]:
    """Put the calling thread on a core and make it real-time, as far as allowed.

    Returns:
        The core (-1: the kernel's choice) and whether it is real-time.
    """
    try:
        if cpu >= 0:
            os.sched_setaffinity(0, {cpu})
    except OSError:
        cpu = -1
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:
        return cpu, False
    return cpu, True


def _clock_nanosleep() -> "ctypes._NamedFuncPointer":
    function = ctypes.CDLL(None).clock_nanosleep
    function.argtypes = (
        ctypes.c_int,
        ctypes.c_int,
        ctypes.POINTER(_Timespec),
        ctypes.POINTER(_Timespec),
    )
    function.restype = ctypes.c_int
    return function


def _floor() -> int:
    """Cost of the same steps with a deadline that is already past (median of 100)."""
    sleep, now, costs = _clock_nanosleep(), time.monotonic_ns, []
    past = _Timespec(0, 0)
    for _ in range(100):
        before = now()
        sleep(time.CLOCK_MONOTONIC, _ABSOLUTE, ctypes.byref(past), None)
        costs.append(now() - before)
    return sorted(costs)[50]
