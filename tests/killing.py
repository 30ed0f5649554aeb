"""Work in a forked child that SIGKILLs itself at its n-th write(2)."""

import os
import signal
from collections.abc import Callable
from typing import Literal

How = Literal["before", "half", "after"]


def killed_at(number: int, how: How, work: Callable[[], object]) -> bool:
    """Do work in a child; tell whether it was killed (else it ran to its end).

    Args:
        number: Which os.write of the child is its last.
        how: Killed before that write, with half of it done, or after it.
        work: What the child does.
    """
    child = os.fork()
    if child == 0:
        _arm(number, how)
        work()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise AssertionError(f"the child that was to die at write {number} ended with {code}")
    return code != 0


def _arm(number: int, how: How) -> None:
    write, left = os.write, [number]

    def deadly(handle: int, data: bytes) -> int:
        left[0] -= 1
        if left[0]:
            return write(handle, data)
        # A file of the kernel takes a value whole or not at all; only the journal can be torn.
        if how == "after":
            write(handle, data)
        elif how == "half" and data.startswith(b"{"):
            write(handle, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")

    os.write = deadly
