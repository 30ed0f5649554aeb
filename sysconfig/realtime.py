"""What a process asks of the kernel at run time, read back: granted, or not and why.

Nothing here raises where a right is missing; the answer says so, and `health` passes it on.
"""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from utterd.sysconfig.cpus import format_list
from utterd.sysconfig.knob import say

_LIBC = ctypes.CDLL(None, use_errno=True)
_MCL_CURRENT, _MCL_ONFAULT = 1, 4
_MPOL_DEFAULT, _MPOL_PREFERRED = 0, 1
_SYSCALLS = {"x86_64": (238, 239), "aarch64": (237, 236)}
"""Numbers of set_mempolicy and get_mempolicy; libc wraps neither."""
_MAX_NODES = 1024


@dataclass(frozen=True, slots=True)
class Grant:
    """A wish and what came of it."""

    wish: str
    asked: str
    got: str
    """As read back from the kernel."""
    reason: str = ""
    """Why it was not granted, and what to do; empty if it was."""

    @property
    def granted(self) -> bool:
        """Whether the kernel does what was asked."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of some process, as the kernel schedules it."""

    tid: int
    name: str
    cpus: frozenset[int]
    realtime: bool
    priority: int


def set_fifo(priority: int, tid: int = 0) -> Grant:
    """Make a thread SCHED_FIFO; its children start as ordinary ones again.

    Args:
        priority: 1 to 99; above that of ordinary desktop audio is 10 to 20.
        tid: 0 is the calling thread.
    """
    asked = f"SCHED_FIFO {priority}"
    reason = ""
    try:
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(tid, policy, os.sched_param(priority))
    except PermissionError:
        reason = (
            "not permitted (EPERM): set LimitRTPRIO= in the unit or an rtprio limit for the user"
        )
    except OSError as error:
        reason = say(error)
    return Grant("real-time priority", asked, _policy(tid), reason)


def lock_memory() -> Grant:
    """Lock what the process has mapped, as it is touched.

    Pages mapped later stay free: locking them too (MCL_FUTURE) breaks CUDA.
    """
    reason = ""
    if _LIBC.mlockall(_MCL_CURRENT | _MCL_ONFAULT):
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        reason = f"{say(error)}: set LimitMEMLOCK=infinity in the unit or a memlock limit"
    got = f"{_locked_kib()} KiB locked"
    return Grant("locked memory", "all mapped now", got, reason)


def set_affinity(pid: int, cpus: frozenset[int]) -> Grant:
    """Keep every thread a process has now on some cores; new ones inherit from their maker.

    Args:
        pid: 0 is the calling process.
        cpus: Cores.
    """
    reason, found = "", frozenset[int]()
    for tid in _tids(pid):
        try:
            os.sched_setaffinity(tid, cpus)
            found |= frozenset(os.sched_getaffinity(tid))
        except ProcessLookupError:
            continue  # the thread ended meanwhile
        except OSError as error:
            reason = f"{say(error)}: are the cores online and in the service's cpuset?"
    if not found and not reason:
        reason = f"process {pid} has ended"
    elif not reason and found != cpus:
        reason = "the service's cpuset leaves fewer cores"
    return Grant("cores", format_list(cpus), format_list(found), reason)


def prefer_node(node: int) -> Grant:
    """Take memory of the calling thread from a NUMA node while that has some; children inherit.

    Args:
        node: Node number; -1 goes back to the kernel's default.
    """
    asked = f"node {node}" if node >= 0 else "default"
    numbers = _SYSCALLS.get(platform.machine())
    if numbers is None:
        return Grant("memory node", asked, "default", "no known system call on this processor")
    mask = (ctypes.c_ulong * (_MAX_NODES // 64))()
    if node >= 0:
        mask[node // 64] = 1 << node % 64
    mode = _MPOL_PREFERRED if node >= 0 else _MPOL_DEFAULT
    length = ctypes.c_ulong(_MAX_NODES + 1)
    reason = ""
    if _LIBC.syscall(numbers[0], mode, mask if node >= 0 else None, length):
        reason = say(OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())))
    got = _node_now(numbers[1])
    if not reason and got != asked:
        reason = f"the kernel keeps {got}"
    return Grant("memory node", asked, got, reason)


@contextmanager
def spawning_on_node(node: int) -> Iterator[Grant]:
    """Start children inside this block: their memory comes from the node, the caller's does not.

    Args:
        node: Node number; -1 changes nothing.
    """
    grant = prefer_node(node)
    try:
        yield grant
    finally:
        if node >= 0:
            prefer_node(-1)


def hold_wake_up(microseconds: int) -> tuple[Grant, int]:
    """Keep every core from idle states that take longer to leave, as long as a file stays open.

    Args:
        microseconds: The longest time to leave an idle state.

    Returns:
        The grant, and the descriptor to keep open (-1 if it was not granted).
    """
    path, asked = "/dev/cpu_dma_latency", f"{microseconds} us"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        reason = f"{path}: {say(error)}; utterd-tune does it for the cores of the voice instead"
        return Grant("wake-up latency", asked, "no limit of ours", reason), -1
    try:
        os.write(handle, microseconds.to_bytes(4, "little", signed=True))
        effective = int.from_bytes(os.pread(handle, 4, 0), "little", signed=True)
    except OSError as error:
        os.close(handle)
        return Grant("wake-up latency", asked, "no limit of ours", say(error)), -1
    reason = "" if effective <= microseconds else f"the kernel shows {effective} us"
    return Grant("wake-up latency", asked, f"{effective} us", reason), handle


def threads(pid: int) -> list[Thread]:
    """Tell how the threads of a process are scheduled, to read back what a child did itself."""
    found = []
    for tid in _tids(pid):
        try:
            policy = os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
            priority = os.sched_getparam(tid).sched_priority
            cpus = frozenset(os.sched_getaffinity(tid))
            name = Path(f"/proc/{tid}/comm").read_text().strip()
        except (ProcessLookupError, FileNotFoundError):
            continue  # the thread ended meanwhile
        realtime = policy in (os.SCHED_FIFO, os.SCHED_RR)
        found.append(Thread(tid, name, cpus, realtime, priority))
    return found


def _tids(pid: int) -> list[int]:
    try:
        return sorted(int(path.name) for path in Path(f"/proc/{pid or 'self'}/task").iterdir())
    except FileNotFoundError:
        return []


def _policy(tid: int) -> str:
    names = {os.SCHED_OTHER: "SCHED_OTHER", os.SCHED_FIFO: "SCHED_FIFO", os.SCHED_RR: "SCHED_RR"}
    policy = os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
    return f"{names.get(policy, str(policy))} {os.sched_getparam(tid).sched_priority}"


def _locked_kib() -> int:
    status = Path("/proc/self/status").read_text()
    line = next((line for line in status.splitlines() if line.startswith("VmLck")), "VmLck: 0 kB")
    return int(line.split()[1])


def _node_now(number: int) -> str:
    mode = ctypes.c_int()
    mask = (ctypes.c_ulong * (_MAX_NODES // 64))()
    length = ctypes.c_ulong(_MAX_NODES + 1)
    if _LIBC.syscall(number, ctypes.byref(mode), mask, length, None, ctypes.c_ulong(0)):
        return "unknown"
    nodes = [
        index * 64 + bit for index, word in enumerate(mask) for bit in range(64) if word >> bit & 1
    ]
    return f"node {nodes[0]}" if mode.value == _MPOL_PREFERRED and nodes else "default"
