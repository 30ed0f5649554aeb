"""Durable utterances on disk: what was accepted and has not been heard to its end.

SQLite with a write-ahead log. `synchronous=FULL` makes a commit survive the loss of power; the
cost is one fsync for each accepted utterance and each clause (tests/bench/journal.py).

A disk that is full must not keep the end of an utterance from being written: it would be said
again after a crash. So both files get their room before anything is accepted. The database is
filled to a fixed size and emptied again (SQLite keeps the pages), the log is allocated and folded
into the database long before its room is used up. No text is taken that would leave the database
without a margin; it grows in steps, while the disk has plenty of room.
"""

import errno
import logging
import os
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

PAGE_BYTES = 4096
STEP_PAGES = 256
"""The database is made this large, and grows by as much."""
MARGIN_PAGES = 16
"""Stay free for what follows acceptance: progress, and ends."""
LOG_BYTES = 2 * STEP_PAGES * PAGE_BYTES
FOLD_PAGES = 64
"""In the log; then it is folded into the database, and begun anew."""
SPARE_BYTES = 8 * STEP_PAGES * PAGE_BYTES
"""Of the disk; with less the database does not grow."""


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
        self._has_room = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = self._open()
        except (sqlite3.Error, OSError) as error:
            raise JournalError(
                f"{path} can't be used as a journal ({error}): {_advice(error)}"
            ) from None

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None)
        try:
            try:
                database.execute("PRAGMA journal_mode=WAL").fetchall()
                database.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            except sqlite3.OperationalError:
                # On a full disk there is no room for the memory that processes share: alone, it
                # is not needed, and what was accepted can be read.
                database.close()
                database = sqlite3.connect(self._path, isolation_level=None)
                database.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
                database.execute("PRAGMA journal_mode=WAL").fetchall()
            database.execute("PRAGMA synchronous=FULL")
            database.execute("PRAGMA secure_delete=ON").fetchall()
            database.execute(f"PRAGMA wal_autocheckpoint={FOLD_PAGES}").fetchall()
            database.execute(_SCHEMA)
        except sqlite3.Error:
            database.close()
            raise
        return database

    def add(self, client: str, id_: str, command: Speak, expires_unix_ns: int) -> None:
        """Keep an utterance; it is on disk when this returns, and there is room for its end.

        Raises:
            JournalError: there is no room, or it is there already.
        """
        encoded = msgspec.msgpack.encode(msgspec.structs.replace(command, text=""))
        self.make_room(command.text)
        self._do(
            "INSERT INTO utterance (client, id, command, text, closed, expires_unix_ns)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            client,
            id_,
            encoded,
            command.text,
            not command.more,
            expires_unix_ns,
        )

    def extend(self, client: str, id_: str, text: str, *, closed: bool) -> None:
        """Its text is this now, and complete or not.

        Raises:
            JournalError: there is no room.
        """
        self.make_room(text)
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
                entries.append(
                    Entry(client, id_, msgspec.structs.replace(decoded, text=rest[0]), *rest)
                )
        return entries

    def close(self) -> None:
        """Fold the log into the database."""
        self._database.close()

    def make_room(self, text: str) -> None:
        """See that a text can be kept, and everything that follows on it be written.

        Raises:
            JournalError: there is no room.
        """
        size = len(text.encode())
        try:
            if not self._has_room:
                self._grow(STEP_PAGES)
                self._allocate_log()
                self._has_room = True
            needed = MARGIN_PAGES + -(-size // PAGE_BYTES)
            free = self._number("freelist_count")
            if free < needed:
                self._grow(self._number("page_count") + max(STEP_PAGES, needed))
        except (sqlite3.Error, OSError) as error:
            raise JournalError(
                f"{self._path} has no room for another text ({error}): {_advice(error)}"
            ) from None

    def _grow(self, pages: int) -> None:
        """Give the database so many pages, really written."""
        missing = pages - self._number("page_count")
        if missing <= 0:
            return
        status = os.statvfs(self._path.parent)
        if status.f_bavail * status.f_frsize < SPARE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._database.execute("CREATE TABLE IF NOT EXISTS room (bytes BLOB)")
        self._database.execute("INSERT INTO room VALUES (zeroblob(?))", (missing * PAGE_BYTES,))
        # The pages must reach the file before they are free: what is free is not written.
        self._fold()
        self._database.execute("DROP TABLE room")
        self._fold()

    def _allocate_log(self) -> None:
        log_file = self._path.with_name(f"{self._path.name}-wal")
        fd = os.open(log_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, LOG_BYTES)  # zeros behind its end: no frame of the log
        finally:
            os.close(fd)

    def _fold(self) -> None:
        self._database.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def _number(self, pragma: str) -> int:
        return int(self._database.execute(f"PRAGMA {pragma}").fetchone()[0])

    def _do(self, statement: str, *values: object) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise JournalError(
                f"{self._path} can't be written ({error}): {_advice(error)}"
            ) from None


def _advice(error: sqlite3.Error | OSError) -> str:
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return "move it away"
    return "make room on its disk"
