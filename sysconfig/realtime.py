"""Cores and memory node of a process, asked of the kernel and read back: granted, or not and why.

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


def _tids(pid: int) -> list[int]:
    try:
        return sorted(int(path.name) for path in Path(f"/proc/{pid or 'self'}/task").iterdir())
    except FileNotFoundError:
        return []


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
