"""What we did to the machine, on record before we do it: JSON lines, each fsynced.

A process killed between any two writes leaves a journal from which `restore` puts everything
back. A line cut short was never acted on, since acting comes after fsync.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utterd.sysconfig.knob import Change, Outcome

FOLDER = Path("/run/utterd-tune")


class JournalError(Exception):
    """The journal can't be used; the text says why and what to do."""


@dataclass(slots=True)
class Entry:
    """One write and what became of it."""

    number: int
    change: Change
    left: str
    """The value we left behind: what the machine showed after the write."""
    failed: Outcome | None = None
    restored: bool = False


@dataclass(slots=True)
class Record:
    """The journal as read: for which configuration and boot, and every write."""

    label: str
    boot: str
    entries: list[Entry] = field(default_factory=list)
    complete: bool = False
    """The last apply ran to its end."""

    def live(self) -> list[Entry]:
        """Writes that are still in effect as far as we know, oldest first."""
        return [entry for entry in self.entries if entry.failed is None and not entry.restored]

    def applied(self) -> dict[str, str]:
        """By path, the value we left last."""
        return {entry.change.path: entry.left for entry in self.live()}

    def failed(self) -> dict[str, Outcome]:
        """By path, what came of the last try where it failed."""
        last = {entry.change.path: entry.failed for entry in self.entries}
        return {path: outcome for path, outcome in last.items() if outcome is not None}


class Journal:
    """The journal of a machine.

    Args:
        folder: Where it lies; on a tmpfs, so that it ends with the settings it speaks of.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._file = folder / "journal.jsonl"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other tuner out meanwhile.

        Raises:
            JournalError: Another one is at work, or the folder can't be made.
        """
        try:
            self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            handle = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            text = f"can't use {self._folder}: {error.strerror}; run as root or give --journal"
            raise JournalError(text) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise JournalError(
                "another utterd-tune is at work; try again when it is done"
            ) from None
        finally:
            os.close(handle)

    def read(self) -> Record | None:
        """Read the whole journal; None if there is none.

        Raises:
            JournalError: Unreadable, or not ours.
        """
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalError(f"can't read {self._file}: {error.strerror}") from None
        record: Record | None = None
        for line in data.split(b"\n")[:-1]:
            try:
                record = _replay(record, json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                text = f"{self._file} is damaged ({error}); look at it, then delete it"
                raise JournalError(text) from None
        return record

    def begin(self, label: str, boot: str) -> None:
        """Open the record of an apply; a journal of the same apply goes on."""
        self._append(begin=label, boot=boot)

    def intend(self, number: int, change: Change) -> None:
        """Put on record what is about to be written."""
        words = {"knob": change.knob, "path": change.path, "reason": change.reason}
        self._append(intend=number, old=change.old, new=change.new, **words)

    def done(self, number: int, left: str) -> None:
        """Put on record that it was written, and what the machine shows now."""
        self._append(done=number, left=left)

    def failed(self, number: int, outcome: Outcome) -> None:
        """Put on record that it was not written."""
        self._append(failed=number, outcome=str(outcome))

    def restored(self, number: int) -> None:
        """Put on record that the write is undone, or no longer ours to undo."""
        self._append(restored=number)

    def end(self) -> None:
        """Close the record of an apply that ran to its end."""
        self._append(end=True)

    def remove(self) -> None:
        """Forget everything: nothing of ours is left on the machine."""
        self._file.unlink(missing_ok=True)
        _sync(self._folder)

    def _append(self, **words: object) -> None:
        created = not self._file.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        handle = os.open(self._file, flags, 0o644)
        try:
            _drop_torn_line(handle)
            data = json.dumps(words).encode() + b"\n"
            if os.write(handle, data) != len(data):
                raise JournalError(f"{self._file}: no space left; nothing was changed")
            os.fsync(handle)
        except OSError as error:
            raise JournalError(f"can't write {self._file}: {error.strerror}") from None
        finally:
            os.close(handle)
        if created:
            _sync(self._folder)


def _replay(record: Record | None, words: dict[str, Any]) -> Record:
    if record is None:
        return Record(label=words["begin"], boot=words["boot"])
    match words:
        case {"begin": label, "boot": boot}:
            record.label, record.boot, record.complete = label, boot, False
        case {"intend": number, "knob": knob, "path": path, "old": old, "new": new}:
            change = Change(knob, path, old, new, words["reason"])
            record.entries.append(Entry(number, change, left=new))
        case {"done": number, "left": left}:
            record.entries[number].left = left
        case {"failed": number, "outcome": outcome}:
            record.entries[number].failed = Outcome(outcome)
        case {"restored": number}:
            record.entries[number].restored = True
        case {"end": True}:
            record.complete = True
        case _:
            raise ValueError(f"unknown line {words}")
    return record


def _drop_torn_line(handle: int) -> None:
    """Cut off a line that a killed process did not finish."""
    size = os.fstat(handle).st_size
    tail = os.pread(handle, 65536, max(0, size - 65536))
    torn = len(tail) - (tail.rfind(b"\n") + 1)
    if torn:
        os.ftruncate(handle, size - torn)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
