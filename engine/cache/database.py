"""The database of the cache on disk: opened by workers, emptied by the daemon.

The folder is for its owner alone (0700, files 0600), and deleted entries are overwritten.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Database:
    """One that is open."""

    connection: sqlite3.Connection
    file: tuple[int, int]
    """Device and inode: another worker may have put a new one in its place."""


def current(database: Database | None, folder: Path, *, wait_s: float) -> Database:
    """The open database if it still is the one on disk, else that one."""
    path = folder / FILE
    if database is not None:
        try:
            if _file(path) == database.file:
                return database
        except FileNotFoundError:
            pass
        database.connection.close()
    connection = _connect(folder, wait_s)
    return Database(connection, _file(path))


def _file(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _connect(folder: Path, wait_s: float) -> sqlite3.Connection:
    make(folder)
    path = folder / FILE
    # SQLite gives its other files the permissions of this one.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=wait_s)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        # A loss of power may cost the last entries, never the rest.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("PRAGMA journal_size_limit=4194304")
        connection.execute(_SCHEMA)
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
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(deleted)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    try:
        with contextlib.closing(_connect(folder, BUSY_SECONDS)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise OSError(f"the cache in {folder} can't be used ({error}): delete the folder") from None
