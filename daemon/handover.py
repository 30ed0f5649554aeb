"""What one daemon leaves to the next where it ends only to be started anew, over its memory limit.

Durable texts are in the journal; this is what else clients rely on: what `set` was told, who spoke
last, and how the latest utterances ended.
"""

import contextlib
import logging
import os
from pathlib import Path

import msgspec

from utterd.daemon import events
from utterd.daemon.protocol import Speak
from utterd.daemon.records import Records

log = logging.getLogger("handover")

EXIT_AGAIN = 75
"""Exit status of a daemon that systemd shall start anew."""

Terminal = events.Ended | events.Cancelled | events.Failed | events.Dropped


class Handover(msgspec.Struct, frozen=True):
    """The file's content."""

    reason: str
    renewals: int
    """How often it came to this, this time included."""
    gain: float
    voice: str
    """What `set` made the default; "" if nothing."""
    terminal: list[tuple[str, str, Terminal]]
    last_of: list[tuple[str, Speak]]

    @classmethod
    def of(
        cls, records: Records, *, reason: str, renewals: int, gain: float, voice: str
    ) -> "Handover":
        """Gather it."""
        return cls(
            reason=reason,
            renewals=renewals,
            gain=gain,
            voice=voice,
            terminal=[
                (client, id_, event)
                for (client, id_), event in records.terminal.items()
                if isinstance(event, Terminal)
            ],
            last_of=list(records.last_of.items()),
        )

    def recall(self, records: Records) -> None:
        """Put back what is remembered of utterances that are over."""
        for client, id_, event in self.terminal:
            records.terminal[client, id_] = event
        records.last_of.update(self.last_of)


def leave(path: Path, handover: Handover) -> None:
    """Write the file; where that fails the next daemon begins as any."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.msgpack.encode(handover))
    except OSError as error:
        log.warning("nothing is handed over", extra={"path": str(path), "reason": error.strerror})
        with contextlib.suppress(OSError):
            path.unlink()


def take(path: Path) -> Handover | None:
    """Read the file and remove it; None where there is none, or none that can be read."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("nothing is taken over", extra={"path": str(path), "reason": error.strerror})
        return None
    with contextlib.suppress(OSError):
        path.unlink()
    try:
        return msgspec.msgpack.decode(data, type=Handover)
    except msgspec.DecodeError as error:
        log.warning("nothing is taken over", extra={"path": str(path), "reason": str(error)})
        return None
