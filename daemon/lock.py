"""The lock of a run folder: one daemon at a time, and clients see that it is on its way.

It is taken before the daemon's libraries are loaded, which takes seconds on a small machine.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StartError(Exception):
    """The daemon can't start; one line: what happened, to what, and what to do."""


@contextmanager
def lock(run_dir: Path) -> Iterator[None]:
    """Make the run folder and hold its lock, so that no second daemon takes the sockets.

    Raises:
        StartError: another daemon holds it, or the folder can't be used.
    """
    try:
        run_dir.mkdir(parents=True, exist_ok=True, mode=0o755)
        descriptor = os.open(run_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(
            f"{run_dir} can't be used ({error.strerror}); name another with --run-dir"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            other = os.read(descriptor, 20).decode().strip()
            raise StartError(f"another utterd (pid {other}) uses {run_dir}") from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            (run_dir / "lock").unlink(missing_ok=True)
    finally:
        os.close(descriptor)
