"""A limit on calls into a sound library that may never come back."""

import os
import threading
from collections.abc import Callable
from types import TracebackType

EXIT_HUNG = 75
"""Exit status of a player whose sound library hangs; only a new process helps."""


class Deadline:
    """Ends this process when what runs inside takes too long. The call must let go of the GIL.

    Args:
        seconds: The limit.
        last_words: Called before the end, from another thread.
    """

    def __init__(self, seconds: float, last_words: Callable[[], None]) -> None:
        self._last_words = last_words
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def _expire(self) -> None:
        try:
            self._last_words()
        finally:
            os._exit(EXIT_HUNG)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
