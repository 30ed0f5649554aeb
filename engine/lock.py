"""One lock for all that is Python in a worker's speaking threads.

Nearly all of their work is networks, which run side by side without it. It changes hands only
there and where a thread has nothing to do, so that no reader, cache, voice or generation must be
safe for two threads.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class GlobalLock:
    """Held by the thread that works, `with` it; its methods are for that thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._kept = False

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let another thread work meanwhile, unless the lock is kept."""
        if self._kept:
            yield
            return
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let no other thread work, whatever runs or is waited for."""
        self._kept = True
        try:
            yield
        finally:
            self._kept = False

    def wait(self) -> None:
        """Let others work until one of them calls `wake`."""
        self._work.wait()

    def wake(self) -> None:
        """Wake one thread that waits: there is something to do."""
        self._work.notify()
