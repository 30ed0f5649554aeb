"""Structured log on standard error: text for people, JSON for machines."""

import logging
import sys
from typing import Any

import msgspec

from utterd.daemon.config import Log

_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """`LEVEL room: message key=value ...`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        fields = " ".join(f"{key}={_shown(value)}" for key, value in extra_of(record).items())
        line = f"{record.levelname.lower()} {record.name}: {record.getMessage()} {fields}".rstrip()
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


def _shown(value: object) -> str:
    """In quotes where it would not read as one word: clients choose their names and ids."""
    text = str(value)
    plain = text.isprintable() and not set(text) & {" ", '"', "="}
    return text if text and plain else msgspec.json.encode(text).decode()


def extra_of(record: logging.LogRecord) -> dict[str, Any]:
    """What was given as `extra`."""
    return {key: value for key, value in vars(record).items() if key not in _FIELDS}


def configure(config: Log) -> None:
    """Set up the root logger."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if config.format == "json" else TextFormatter())
    logging.basicConfig(level=config.level.upper(), handlers=[handler], force=True)
