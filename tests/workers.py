"""How the suite is spread over processes, and what they share.

The whole suite runs in two processes, since it waits more than it computes; a part of it runs in
one, in which a debugger and `-s` work. Each process has sound servers, daemons and folders of its
own. Only what is dear to make is shared, in a folder that is kept between runs.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PROCESSES = 2
MEMORY = "/dev/shm"  # noqa: S108
ROOM_BYTES = 1 << 30
ROOMS = ("vm", "systemd", "e2e", "audio", "sysconfig", "daemon", "engine")
"""Those with the longest modules come first: none is to be left over at the end.

`engine` is last: ONNX Runtime rounds the smallest numbers to zero from then on, in the thread of
its first session, which is the tests', and Hypothesis minds.
"""


def processes(asked: Iterable[str], folder: Path) -> int:
    """How many processes run what was asked for on a command line in a folder; 0: this one."""
    whole = all(TESTS.is_relative_to((folder / path).resolve()) for path in asked)
    return PROCESSES if whole else 0


def sort(items: list[pytest.Item]) -> None:
    """Bring tests into the order of their rooms, which is also that of the processes' work."""

    def place(item: pytest.Item) -> int:
        room = item.path.relative_to(TESTS).parts[0]
        return ROOMS.index(room) if room in ROOMS else len(ROOMS)

    items.sort(key=place)


def kept() -> Path:
    """The folder that is kept between runs: `UTTERD_TEST_DATA`, default `~/.cache/utterd-tests`."""
    folder = Path(os.environ.get("UTTERD_TEST_DATA", "~/.cache/utterd-tests")).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Make a thing at a path while no other process of the tests does, which then finds it made."""
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder for a while, in memory where there is room for programs: disks are slow to sync.

    Its name is short, since that of a socket must be.
    """
    roomy = shutil.disk_usage(MEMORY).free > ROOM_BYTES
    runs = not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    folder = tempfile.mkdtemp(prefix="utterd.", dir=MEMORY if roomy and runs else None)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)
