"""Keeps the journal true to what happens: added before `accepted`, removed when it is over."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from utterd.daemon import events
from utterd.daemon.journal import Entry, Journal, JournalError
from utterd.daemon.protocol import ProtocolError
from utterd.daemon.utterance import Utterance

Key = tuple[str, str]

RETRY_MS = 5000
"""When what was refused for want of room may be tried again."""


class Durable:
    """The durable utterances that live. The file is made when the first one comes.

    Args:
        path: of the journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal: Journal | None = None
        self._claim = -1
        """Descriptor of the locked file: another daemon with this data folder would say the same
        again."""
        self._keys: set[Key] = set()
        self._over: set[Key] = set()
        """They have ended, and the journal does not know it yet."""
        self.problem = ""
        """One line: why the journal does not take what it should."""

    @property
    def behind(self) -> int:
        """Utterances that have ended and would be said again after a crash."""
        return len(self._over)

    def left(self) -> list[Entry]:
        """What an earlier daemon accepted and did not speak to its end, in order.

        Raises:
            JournalError: the journal can't be read.
        """
        if not self._path.exists():
            return []
        try:
            entries = self._open().entries()
        except JournalError as error:
            self.problem = str(error)
            raise
        if not entries:
            self.close()  # another daemon may want it
        self._keys = {(entry.client, entry.id) for entry in entries}
        return entries

    def admit(self, utterance: Utterance) -> None:
        """Put a durable utterance on disk before it is accepted.

        Raises:
            ProtocolError: `unavailable`, it can't be.
        """
        if not utterance.command.durable or utterance.key in self._keys:
            return
        left_ns = utterance.deadline_ns - time.monotonic_ns() if utterance.deadline_ns else 0
        expires_unix_ns = time.time_ns() + left_ns if left_ns else 0
        self.catch_up()
        with self._refusing():
            if self._over:  # what comes now could not be ended either
                raise JournalError(self.problem)
            self._open().add(*utterance.key, utterance.command, expires_unix_ns)
        self._keys.add(utterance.key)

    def make_room(self, utterance: Utterance, text: str) -> None:
        """See that more of a durable utterance's text can be kept, before it is taken.

        Raises:
            ProtocolError: `unavailable`, it can't be.
        """
        if utterance.key in self._keys:
            with self._refusing():
                self._open().make_room(utterance.text + text)

    def extend(self, utterance: Utterance) -> None:
        """More of its text has come, or its end.

        Raises:
            ProtocolError: `unavailable`, it can't be kept.
        """
        if utterance.key in self._keys:
            with self._refusing():
                self._open().extend(*utterance.key, utterance.text, closed=utterance.closed)

    def see(self, event: events.Event, *, closing: bool) -> None:
        """Follow what happens to durable utterances; the end of the daemon does not end them."""
        key = (event.client, event.id)
        if key not in self._keys:
            return
        if isinstance(event, events.Terminal) and not closing:
            self._keys.discard(key)
            self._over.add(key)
            self.catch_up()
        elif isinstance(event, events.Progress):
            try:
                self._open().progress(*key, event.start)
            except JournalError as error:
                # A clause may be said twice after a crash, but what sounds now must go on.
                self.problem = str(error)

    def catch_up(self) -> None:
        """Write what could not be written when it happened, and see whether there is room again."""
        if not self._over and not self.problem:
            return
        try:
            for key in list(self._over):
                self._open().remove(*key)
                self._over.discard(key)
            if self.problem:
                self._open().make_room("")
        except JournalError as error:
            self.problem = str(error)
        else:
            self.problem = ""

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._let_go()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except JournalError as error:
            self.problem = str(error)
            raise ProtocolError(
                "unavailable", str(error), "durable", retry_after_ms=RETRY_MS
            ) from None

    def _open(self) -> Journal:
        if self._journal is None:
            self._take()
            try:
                self._journal = Journal(self._path)
            except JournalError:
                self._let_go()
                raise
        return self._journal

    def _take(self) -> None:
        """Have the file for ourselves, and let nobody else read what is said."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._claim = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(self._claim, 0o600)
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._let_go()
            raise JournalError(
                f"{self._path} is in use by another utterd: give each a data folder of its own"
            ) from None
        except OSError:
            return  # the journal will say what is wrong

    def _let_go(self) -> None:
        if self._claim >= 0:
            os.close(self._claim)
            self._claim = -1
