"""One shape for everything that can be turned: what it should be, what it is, how to set it."""

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from utterd.sysconfig.config import Config
from utterd.sysconfig.nvml import Nvml
from utterd.sysconfig.sysfs import ABSENT, Sysfs


class State(StrEnum):
    """How a setting stands against what it should be."""

    OK = "ok"
    DRIFTED = "drifted"
    PENDING = "pending"
    UNSUPPORTED = "unsupported"
    UNCHANGEABLE = "unchangeable"


class Outcome(StrEnum):
    """What came of one write."""

    APPLIED = "applied"
    RESTORED = "restored"
    PENDING = "pending"
    UNSUPPORTED = "unsupported"
    UNCHANGEABLE = "unchangeable"
    REFUSED = "refused"
    CHANGED = "changed by another"
    """Not touched: it is no longer as we left it."""


class Level(StrEnum):
    """How much a note matters."""

    INFO = "info"
    ADVICE = "advice"
    UNSUPPORTED = "unsupported"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Target:
    """A setting and the value it should have."""

    knob: str
    path: str
    want: str
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """One write that is due."""

    knob: str
    path: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something seen on the way that no write of ours will change."""

    knob: str
    path: str
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything a knob may look at."""

    fs: Sysfs
    nvml: Nvml = field(default_factory=Nvml.absent)
    applied: Mapping[str, str] = field(default_factory=dict)
    """What the journal says we wrote, by path: the only memory of settings without a getter."""


TRANSIENT = frozenset({errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ENOMEM, errno.ENOSPC})
MISSING = ABSENT | {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}


class Knob(ABC):
    """A family of settings. Subclasses override what differs from one plain file a setting."""

    name: ClassVar[str]

    @abstractmethod
    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Say what should be, reading only. A machine without the setting yields a note."""

    def get(self, machine: Machine, path: str) -> str:
        """Read the present value, in the form of `canonical`.

        Raises:
            OSError: It can't be read.
        """
        return self.canonical(machine.fs.read(path))

    def set(self, machine: Machine, path: str, value: str) -> None:
        """Write a value.

        Raises:
            OSError: The kernel (or the driver) said no.
        """
        machine.fs.write(path, value)

    def canonical(self, value: str) -> str:
        """Bring a value into the form in which two equal ones are the same text."""
        return value.strip()

    def pending(self, machine: Machine, target: Target) -> str:
        """Say why a value that is set is not in effect yet; empty if it is."""
        del machine, target
        return ""

    def outcome(self, error: OSError) -> Outcome:
        """Tell what a failed write means."""
        if error.errno in TRANSIENT:
            return Outcome.PENDING
        if error.errno in MISSING:
            return Outcome.UNSUPPORTED
        if error.errno == errno.EIO:
            return Outcome.UNCHANGEABLE
        return Outcome.REFUSED


def say(error: OSError) -> str:
    """Put an OSError into a few words with its symbol."""
    symbol = errno.errorcode.get(error.errno or 0, "?")
    return f"{error.strerror or error} ({symbol})"
