"""Durable utterances on disk: what was accepted and has not been heard to its end.

SQLite with a write-ahead log. `synchronous=FULL` makes a commit survive the loss of power; the
cost is one fsync for each accepted utterance and each clause (tests/bench/journal.py).
"""

import logging
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import msgspec

from utterd.daemon.protocol import Speak

log = logging.getLogger("journal")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS utterance (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client TEXT NOT NULL,
    id TEXT NOT NULL,
    command BLOB NOT NULL,
    text TEXT NOT NULL,
    closed INTEGER NOT NULL,
    resume_at INTEGER NOT NULL DEFAULT 0,
    expires_unix_ns INTEGER NOT NULL,
    UNIQUE (client, id)
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """An utterance that was not heard to its end."""

    client: str
    id: str
    command: Speak
    text: str
    """All that had arrived of it."""
    resume_at: int
    """Character offset of the clause it was in."""
    expires_unix_ns: int
    """CLOCK_REALTIME at which it is too late; 0: never."""


class JournalError(Exception):
    """The journal can't be used; one line: what happened, to what, and what to do."""


class Journal:
    """The durable utterances, in the order in which they were accepted.

    Args:
        path: of the database; made where there is none.

    Raises:
        JournalError: it can't be opened, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise JournalError(
                f"{path} can't be used as a journal ({error}): move it away"
            ) from None

    def add(self, client: str, id_: str, command: Speak, expires_unix_ns: int) -> None:
        """Keep an utterance; it is on disk when this returns."""
        self._do(
            "INSERT INTO utterance (client, id, command, text, closed, expires_unix_ns)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            client,
            id_,
            msgspec.msgpack.encode(command),
            command.text,
            not command.more,
            expires_unix_ns,
        )

    def extend(self, client: str, id_: str, text: str, *, closed: bool) -> None:
        """Its text is this now, and complete or not."""
        self._do(
            "UPDATE utterance SET text = ?, closed = ? WHERE client = ? AND id = ?",
            text,
            closed,
            client,
            id_,
        )

    def progress(self, client: str, id_: str, resume_at: int) -> None:
        """The clause at this character begins to sound."""
        self._do(
            "UPDATE utterance SET resume_at = ? WHERE client = ? AND id = ?",
            resume_at,
            client,
            id_,
        )

    def remove(self, client: str, id_: str) -> None:
        """It is over."""
        self._do("DELETE FROM utterance WHERE client = ? AND id = ?", client, id_)

    def entries(self) -> list[Entry]:
        """What was not heard to its end, in the order of acceptance.

        An entry that can't be read (of another version, say) is logged and taken out, so that
        those behind it are spoken.

        Raises:
            JournalError: the journal itself can't be read.
        """
        try:
            rows = self._database.execute(
                "SELECT client, id, command, text, resume_at, expires_unix_ns"
                " FROM utterance ORDER BY number"
            ).fetchall()
        except sqlite3.Error as error:
            raise JournalError(f"{self._path} can't be read ({error}): move it away") from None
        entries = []
        for client, id_, command, *rest in rows:
            try:
                decoded = msgspec.msgpack.decode(command, type=Speak)
            except msgspec.MsgspecError as error:
                log.error(
                    "a durable utterance is lost", extra={"utterance": id_, "reason": str(error)}
                )
                self.remove(client, id_)
            else:
                entries.append(Entry(client, id_, decoded, *rest))
        return entries

    def close(self) -> None:
        """Fold the log into the database."""
        self._database.close()

    def _do(self, statement: str, *values: object) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise JournalError(
                f"{self._path} can't be written ({error}): is the disk full?"
            ) from None
