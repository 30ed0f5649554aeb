"""Fork a tuner that kills itself at its n-th write, for every n; restore after each.

Usage: killed_tuner.py ROOT JOURNAL apply|restore before|half|after

Needs the repository's root in PYTHONPATH. Prints how many victims died. Exits 1 where something
was not as before.
"""

import sys
from pathlib import Path

from tests.killing import How, killed_at
from tests.sysconfig import machines
from utterd.sysconfig.config import PROFILES, Config
from utterd.sysconfig.journal import Journal
from utterd.sysconfig.knob import Machine, Outcome
from utterd.sysconfig.tuner import Tuner

CONFIG = Config(PROFILES["kiosk"])


def main(root: Path, journal: Path, act: str, how: How) -> None:
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
        killed = killed_at(number, how, work)
        results = tuner().restore()
        wrong = [r for r in results if r.outcome is not Outcome.RESTORED]
        if wrong or machines.snapshot(root) != before or (journal / "journal.jsonl").exists():
            raise SystemExit(f"after write {number} ({how}): {wrong}")
        if not killed:
            break
    sys.stdout.write(f"{number - 1}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
