"""Keeps the journal true to what happens: added before `accepted`, removed when it is over."""

import logging
import time
from pathlib import Path

from utterd.daemon import events
from utterd.daemon.journal import Entry, Journal, JournalError
from utterd.daemon.protocol import ProtocolError
from utterd.daemon.utterance import Utterance

log = logging.getLogger("durable")

Key = tuple[str, str]


class Durable:
    """The durable utterances that live. The file is made when the first one comes.

    Args:
        path: of the journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal: Journal | None = None
        self._keys: set[Key] = set()

    def left(self) -> list[Entry]:
        """What an earlier daemon accepted and did not speak to its end, in order.

        Raises:
            JournalError: the journal can't be read.
        """
        if not self._path.exists():
            return []
        entries = self._open().entries()
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
        try:
            self._open().add(*utterance.key, utterance.command, expires_unix_ns)
        except JournalError as error:
            raise ProtocolError("unavailable", str(error), "durable") from None
        self._keys.add(utterance.key)

    def extend(self, utterance: Utterance) -> None:
        """More of its text has come, or its end.

        Raises:
            ProtocolError: `unavailable`, it can't be kept.
        """
        if utterance.key not in self._keys:
            return
        try:
            self._open().extend(*utterance.key, utterance.text, closed=utterance.closed)
        except JournalError as error:
            raise ProtocolError("unavailable", str(error), "durable") from None

    def see(self, event: events.Event, *, closing: bool) -> None:
        """Follow what happens to durable utterances; the end of the daemon does not end them."""
        key = (event.client, event.id)
        if key not in self._keys:
            return
        try:
            if isinstance(event, events.Terminal) and not closing:
                self._keys.discard(key)
                self._open().remove(*key)
            elif isinstance(event, events.Progress):
                self._open().progress(*key, event.start)
        except JournalError as error:
            # It may be said twice after a crash, but what sounds now must go on.
            log.error("the journal is behind", extra={"utterance": event.id, "reason": str(error)})

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()

    def _open(self) -> Journal:
        if self._journal is None:
            self._journal = Journal(self._path)
        return self._journal
