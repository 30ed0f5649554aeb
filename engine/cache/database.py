"""The database of the cache on disk: opened by workers, emptied by the daemon.

The folder is for its owner alone (0700, files 0600), and deleted entries are overwritten.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

FILE = "speech.sqlite"
BUSY_SECONDS = 2.0
"""How long to wait while another process writes."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS segment (
    key BLOB PRIMARY KEY,
    voice TEXT NOT NULL,
    identity BLOB NOT NULL,
    used REAL NOT NULL,
    bytes INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    timing BLOB NOT NULL,
    samples BLOB NOT NULL
) STRICT
"""
_ORDER = "CREATE INDEX IF NOT EXISTS by_use ON segment (used, bytes)"
"""So that what is too old or too much is found without a look at all that is kept."""


class Database:
    """The one in a folder. Threads that use it take turns.

    Args:
        folder: made where there is none.
        wait_s: how long to wait while another process writes.
    """

    def __init__(self, folder: Path, wait_s: float) -> None:
        self._folder = folder
        self._wait_s = wait_s
        self._open: tuple[sqlite3.Connection, tuple[int, int]] | None = None
        """With device and inode: another worker may have put a new one in its place."""

    def connection(self) -> sqlite3.Connection:
        """The open one if it still is the one on disk, else that one.

        Raises:
            sqlite3.Error: it can't be opened.
            OSError: the folder can't be used.
        """
        if self._open is not None:
            connection, file = self._open
            with contextlib.suppress(FileNotFoundError):
                if _identity((self._folder / FILE).stat()) == file:
                    return connection
            self.close()
        file = _make(self._folder)  # before it is opened: one replaced in between is found later
        connection = _connect(self._folder, self._wait_s)
        self._open = connection, file
        return connection

    def close(self) -> None:
        """Close it, if it is open."""
        if self._open is not None:
            self._open[0].close()
            self._open = None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _make(folder: Path) -> tuple[int, int]:
    """Make an empty file where there is none; which one it is."""
    make(folder)
    # SQLite gives its other files the permissions of this one.
    descriptor = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        return _identity(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _connect(folder: Path, wait_s: float) -> sqlite3.Connection:
    # Lanes take turns with it, which is all that SQLite asks for.
    connection = sqlite3.connect(folder / FILE, timeout=wait_s, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        # A loss of power may cost the last entries, never the rest.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("PRAGMA journal_size_limit=4194304")
        connection.execute(_SCHEMA)
        connection.execute(_ORDER)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def make(folder: Path) -> None:
    """Make the folder, for its owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def clear(folder: Path, voice: str = "") -> int:
    """Delete the entries of a voice, or all of them, and overwrite what they were.

    Returns:
        How many there were.

    Raises:
        OSError: they can't be deleted.
    """
    if not (folder / FILE).exists():
        return 0
    with _opened(folder) as connection:
        with connection:
            deleted = connection.execute(
                "DELETE FROM segment WHERE ? IN ('', voice)", (voice,)
            ).rowcount
        with contextlib.suppress(sqlite3.OperationalError):  # a worker reads: the room is used anew
            connection.execute("VACUUM")
        empty_log(connection)
        return int(deleted)


def empty_log(connection: sqlite3.Connection) -> None:
    """Bring the log into the database, and leave nothing in it of what was deleted."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    try:
        with contextlib.closing(Database(folder, BUSY_SECONDS)) as database:
            yield database.connection()
    except sqlite3.Error as error:
        raise OSError(f"the cache in {folder} can't be used ({error}): delete the folder") from None
