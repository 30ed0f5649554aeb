"""Structured log on standard error: text for people, JSON for machines, fields for journald."""

import logging
import os
import socket
import sys
import textwrap
from typing import Any

import msgspec

from utterd.daemon.config import Log

_PRIORITIES = {
    logging.CRITICAL: 2,
    logging.ERROR: 3,
    logging.WARNING: 4,
    logging.INFO: 6,
    logging.DEBUG: 7,
}
"""syslog's."""
_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """`LEVEL room: message key=value ...`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and below it what more lines the message has."""
        fields = " ".join(f"{key}={_shown(value)}" for key, value in extra_of(record).items())
        said, newline, more = record.getMessage().partition("\n")
        line = f"{record.levelname.lower()} {record.name}: {said} {fields}".rstrip()
        line += newline + textwrap.indent(more, "  ")  # so that it can't pass for another entry
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        entry = {
            "time": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        } | extra_of(record)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry, enc_hook=str).decode()


class JournalHandler(logging.Handler):
    """Sends records to journald with every extra as a field of its own: `UTTERD_UTTERANCE=...`.

    `journalctl UTTERD_UTTERANCE=u7` then finds all that was said of one utterance.

    Args:
        address: of journald's native socket.
    """

    def __init__(self, address: str = "/run/systemd/journal/socket") -> None:
        super().__init__()
        self._address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._text = TextFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Send one datagram; to standard error instead where journald does not take it."""
        fields = {
            "MESSAGE": self._text.format(record),
            "PRIORITY": str(_PRIORITIES.get(record.levelno, 6)),
            "SYSLOG_IDENTIFIER": "utterd",
            "UTTERD_ROOM": record.name,
        } | {f"UTTERD_{key.upper()}": str(value) for key, value in extra_of(record).items()}
        try:
            self._socket.sendto(b"".join(map(_field, fields.items())), self._address)
        except OSError:
            print(self._text.format(record), file=sys.stderr)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()


def _field(item: tuple[str, str]) -> bytes:
    """A field as journald's native protocol spells it: a length before what may hold newlines."""
    name, value = item[0].encode(), item[1].encode("utf-8", "replace")
    return b"%s\n%s%s\n" % (name, len(value).to_bytes(8, "little"), value)


def _shown(value: object) -> str:
    """In quotes where it would not read as one word: clients choose their names and ids."""
    text = str(value)
    plain = text.isprintable() and not set(text) & {" ", '"', "="}
    return text if text and plain else msgspec.json.encode(text).decode()


def extra_of(record: logging.LogRecord) -> dict[str, Any]:
    """What was given as `extra`."""
    return {key: value for key, value in vars(record).items() if key not in _FIELDS}


def configure(config: Log) -> None:
    """Set up the root logger; where standard error is journald's, with fields of their own."""
    handler: logging.Handler
    if config.format == "text" and _is_journal(sys.stderr.fileno()):
        handler = JournalHandler()
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonFormatter() if config.format == "json" else TextFormatter())
    logging.basicConfig(level=config.level.upper(), handlers=[handler], force=True)


def _is_journal(descriptor: int) -> bool:
    """Whether a descriptor is the stream that systemd connected to journald."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
