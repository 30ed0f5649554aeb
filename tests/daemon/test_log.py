"""The log: one line an entry, whatever clients call themselves."""

import json
import logging
from pathlib import Path

import pytest

from utterd.daemon.log import JsonFormatter, TextFormatter, extra_of


def record(**extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "server", "levelno": 20, "levelname": "INFO"})
    made.msg = "accepted"
    made.__dict__.update(extra)
    return made


def test_text_for_people() -> None:
    shown = TextFormatter().format(record(client="car", pid=7))
    assert shown == "info server: accepted client=car pid=7"
    assert TextFormatter().format(record()) == "info server: accepted"


@pytest.mark.parametrize("name", ["a b", "x\nerror server: forged", 'q"', "pid=1", "", "\x1b[2J"])
def test_no_name_forges_a_line_or_a_field(name: str) -> None:
    shown = TextFormatter().format(record(client=name, pid=7))
    head, _, rest = shown.partition("client=")
    assert head == "info server: accepted "
    value, end = json.JSONDecoder().raw_decode(rest)
    assert value == name
    assert rest[end:] == " pid=7"
    assert shown.isprintable()


def test_json_for_machines() -> None:
    entry = json.loads(JsonFormatter().format(record(client="a\nb", path=Path("/x"))))
    assert entry.pop("time") > 0
    assert entry == {
        "level": "info",
        "logger": "server",
        "message": "accepted",
        "client": "a\nb",
        "path": "/x",
    }


def test_an_exception_is_shown() -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        found = record(exc_info=(ValueError, error, error.__traceback__))
    assert "ValueError: why" in TextFormatter().format(found)
    assert "ValueError: why" in json.loads(JsonFormatter().format(found))["exception"]
    assert extra_of(found) == {}
