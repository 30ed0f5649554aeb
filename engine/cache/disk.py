"""Segments on disk: one SQLite database for all workers of a daemon, bounded in bytes and time.

Threads that speak take turns to read, and never wait; a thread of its own writes, so that no disk
stands between a text and its sound. Nothing here is worth failing for: a disk that is full, a
folder that can't be written, a damaged file cost the cache, are told once, and speech goes on.

Samples are float32 as they were made: what is read is what was written, and nothing is decoded.
Every entry has a checksum.
"""

import contextlib
import logging
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from utterd.engine.cache.database import BUSY_SECONDS, FILE, Database, empty_log
from utterd.engine.cache.stored import Stored
from utterd.engine.voices.contract import Timing

log = logging.getLogger("cache")

_WAITING = 32
"""Writes that may wait; more are left out."""
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_GET = "SELECT checksum, timing, samples FROM segment WHERE key = ? AND used > ?"


class Disk:
    """The database as one worker sees it.

    Args:
        folder: made where there is none.
        voice: name of the worker's voice.
        identity: of the voice as it is now; entries of what it was before are deleted.
        limit_bytes: of samples, for all voices together.
        ttl_s: an entry that was not used for so long is deleted.
    """

    def __init__(
        self, folder: Path, voice: str, identity: bytes, limit_bytes: int, ttl_s: float
    ) -> None:
        self.problem = ""
        """Why it does not work now; one line."""
        self.bytes = 0
        """Of all entries, as of the last write."""
        self.evictions = 0
        self.damaged = 0
        self._folder = folder
        self._voice = voice
        self._identity = identity
        self._limit_bytes = limit_bytes
        self._ttl_s = ttl_s
        self._lacks_room = False
        """Until an entry was written again: what needs little room may succeed all the time."""
        self._reading = Database(folder, 0.0)
        self._writing = Database(folder, BUSY_SECONDS)
        self._queue: queue.Queue[_Write | None] = queue.Queue(_WAITING)
        self._queue.put(self._begin)
        self._thread = threading.Thread(target=self._write, name="keep", daemon=True)
        self._thread.start()

    def get(self, key: bytes) -> Stored | None:
        """An entry that is there, whole, and young enough."""
        oldest = time.time() - self._ttl_s
        try:
            row = self._reading.connection().execute(_GET, (key, oldest)).fetchone()
        except (sqlite3.OperationalError, OSError):
            self._later(_look)  # another one may be writing; the writing thread waits, and tells
            return None
        except sqlite3.Error:
            self._drop(key)  # the writing thread meets the same, tells, and mends what it can
            return None
        if row is None:
            return None
        stored = _unpack(*row)
        if stored is None:
            self.damaged += 1
            log.warning("a damaged entry of the cache in %s was dropped", self._folder)
            self._drop(key)
        else:
            self.touch(key)
        return stored

    def put(self, key: bytes, stored: Stored) -> bool:
        """Keep an entry, soon; False if too much is waiting already."""

        def write(connection: sqlite3.Connection) -> None:
            timing, samples = _pack(stored)
            checksum, size = _checksum(timing, samples), len(samples)
            row = (key, self._voice, self._identity, time.time(), size, checksum, timing, samples)
            connection.execute("INSERT OR REPLACE INTO segment VALUES (?,?,?,?,?,?,?,?)", row)
            self._evict(connection)
            self._lacks_room = False

        return self._later(write)

    def touch(self, key: bytes) -> None:
        """An entry was used."""
        values = time.time(), key
        self._later(lambda c: c.execute("UPDATE segment SET used = ? WHERE key = ?", values))

    def clear(self) -> None:
        """Delete all entries of this voice, what waits to be written among them; waits for it.

        What they were is overwritten, in the log of what was written too.
        """

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM segment WHERE voice = ?", (self._voice,))
            self._evict(connection)
            connection.commit()
            empty_log(connection)

        self._queue.put(write)
        self.flush()

    def flush(self) -> None:
        """Wait until what was asked for is done."""
        self._queue.join()

    def close(self) -> None:
        """Write what waits, and end."""
        self._queue.put(None)
        self._thread.join()
        self._reading.close()
        self._writing.close()

    def _drop(self, key: bytes) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM segment WHERE key = ?", (key,))
            self._evict(connection)

        self._later(write)

    def _later(self, write: "_Write") -> bool:
        try:
            self._queue.put_nowait(write)
        except queue.Full:
            return False
        return True

    # ---- the writing thread ----

    def _write(self) -> None:
        while (write := self._queue.get()) is not None:
            try:
                with self._writing.connection() as connection:
                    write(connection)
                if not self._lacks_room:
                    self.problem = ""
            except (sqlite3.Error, OSError) as error:
                self._failed(error)
            self._queue.task_done()
        self._queue.task_done()

    def _failed(self, error: sqlite3.Error | OSError) -> None:
        """Tell once; a file that is no sound database is deleted, and the next write begins anew.

        What is full, locked or forbidden is an `OperationalError`; it may be better next time.
        """
        problem = f"the cache in {self._folder} can't be used: {error}"
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what SQLite adds to it
        self._lacks_room = self._lacks_room or code in _NO_ROOM
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.OperationalError
        ):
            self.damaged += 1
            problem = f"the cache in {self._folder} is damaged ({error}): begun anew"
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    (self._folder / f"{FILE}{suffix}").unlink()
        if self.problem != problem:
            log.warning("%s", problem)
        self.problem = problem

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Delete what the voice said when it was another one."""
        ours = self._voice, self._identity
        connection.execute("DELETE FROM segment WHERE voice = ? AND identity <> ?", ours)
        self._evict(connection)

    def _evict(self, connection: sqlite3.Connection) -> None:
        """Delete what is too old, then what was used longest ago, until the rest fits."""
        oldest = time.time() - self._ttl_s
        (total,) = connection.execute("SELECT ifnull(sum(bytes), 0) FROM segment").fetchone()
        gone = []
        for key, size, used in connection.execute(
            "SELECT key, bytes, used FROM segment ORDER BY used"
        ):
            if total <= self._limit_bytes and used > oldest:
                break
            gone.append((key,))
            total -= size
        connection.executemany("DELETE FROM segment WHERE key = ?", gone)
        self.evictions += len(gone)
        self.bytes = total


_Write = Callable[[sqlite3.Connection], object]
"""What the writing thread does, within a transaction."""


def _look(connection: sqlite3.Connection) -> None:
    """Meet what keeps the database from being read."""
    connection.execute("SELECT count(*) FROM segment")


def _pack(stored: Stored) -> tuple[bytes, bytes]:
    timing = stored.timing
    return (
        msgspec.msgpack.encode((timing.words, timing.marks, timing.samples)),
        stored.samples.astype("<f4", copy=False).tobytes(),
    )


def _unpack(checksum: int, timing: bytes, samples: bytes) -> Stored | None:
    """An entry as it was; None if it isn't whole."""
    if _checksum(timing, samples) != checksum:
        return None
    words, marks, count = msgspec.msgpack.decode(
        timing, type=tuple[tuple[int, ...], tuple[int, ...], int]
    )
    made = np.frombuffer(samples, "<f4").astype(np.float32, copy=False)
    return Stored(Timing(words, marks, count), made) if len(made) == count else None


def _checksum(timing: bytes, samples: bytes) -> int:
    return zlib.crc32(samples, zlib.crc32(timing))
