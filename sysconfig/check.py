"""The shape of a check of the doctor's."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from utterd.sysconfig.config import Config
from utterd.sysconfig.journal import FOLDER
from utterd.sysconfig.nvml import Nvml
from utterd.sysconfig.sysfs import Sysfs


class Verdict(StrEnum):
    """How bad a finding is; the worst one is the doctor's exit code (0, 1, 2)."""

    FINE = "fine"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table."""

    name: str
    verdict: Verdict
    found: str
    why: str = ""
    """Why it matters; empty where all is fine."""
    mend: str = ""
    """The command that mends it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What the checks look at."""

    fs: Sysfs = field(default_factory=Sysfs)
    nvml: Nvml = field(default_factory=Nvml.absent)
    config: Config = field(default_factory=Config)
    journal: Path = FOLDER
    data: Path = Path("/var/lib/utterd")
    """Folder of the voices."""
    run: Path = Path("/run/utterd")
    """Folder of the sockets."""
    runtime_dir: str = ""
    """XDG_RUNTIME_DIR of the user, where sound servers listen."""
    seconds: float = 2.0
    """How long wake-up latency is measured."""


Check = Callable[[Scene], Iterable[Finding]]


def fine(name: str, found: str) -> Finding:
    """Nothing to worry about."""
    return Finding(name, Verdict.FINE, found)


def warning(name: str, found: str, why: str, mend: str) -> Finding:
    """Speech works, but may be late."""
    return Finding(name, Verdict.WARNING, found, why, mend)


def broken(name: str, found: str, why: str, mend: str) -> Finding:
    """Speech can't work like this."""
    return Finding(name, Verdict.BROKEN, found, why, mend)
