"""Fork a tuner that kills itself at its n-th write, for every n; restore after each.

Usage: killed_tuner.py ROOT JOURNAL apply|restore before|half|after

Needs the repository's root in PYTHONPATH. Prints how many victims died. Exits 1 where something
was not as before.
"""

import os
import signal
import sys
from pathlib import Path

from tests.sysconfig import machines
from utterd.sysconfig.config import PROFILES, Config
from utterd.sysconfig.journal import Journal
from utterd.sysconfig.knob import Machine, Outcome
from utterd.sysconfig.tuner import Tuner

CONFIG = Config(PROFILES["kiosk"])


def arm(number: int, how: str) -> None:
    """Make the n-th os.write of this process its last act."""
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
        raise AssertionError("killed")

    os.write = deadly


def died(number: int, how: str, work) -> bool:
    """Whether the victim was killed (else it ran to its end)."""
    child = os.fork()
    if child == 0:
        arm(number, how)
        work()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"victim {number} failed: {status}")
    return False


def main(root: Path, journal: Path, act: str, how: str) -> None:
    """Every n, until a victim lives."""

    def tuner() -> Tuner:
        return Tuner(Machine(machines.KernelSysfs(root)), Journal(journal))

    before = machines.snapshot(root)
    number = 0
    while True:
        number += 1
        if act == "restore":
            tuner().apply(CONFIG)
        work = tuner().restore if act == "restore" else lambda: tuner().apply(CONFIG)
        killed = died(number, how, work)
        results = tuner().restore()
        wrong = [r for r in results if r.outcome is not Outcome.RESTORED]
        if wrong or machines.snapshot(root) != before or (journal / "journal.jsonl").exists():
            raise SystemExit(f"after write {number} ({how}): {wrong}")
        if not killed:
            break
    sys.stdout.write(f"{number - 1}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
