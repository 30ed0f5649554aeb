"""The log: one line an entry, whatever clients call themselves."""

import json
import logging
import os
import socket
from pathlib import Path

import pytest

from utterd.daemon import log
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


def test_more_lines_of_a_message_pass_for_no_other_entry() -> None:
    found = record(client="car")
    found.msg = "it failed\nerror server: forged"
    assert TextFormatter().format(found) == (
        "info server: it failed client=car\n  error server: forged"
    )


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


def received(server: socket.socket) -> dict[str, str]:
    """The fields of one datagram of journald's native protocol."""
    data, fields = server.recv(65536), {}
    while data:
        name, _, data = data.partition(b"\n")
        length = int.from_bytes(data[:8], "little")
        fields[name.decode()] = data[8 : 8 + length].decode()
        assert data[8 + length : 9 + length] == b"\n"
        data = data[9 + length :]
    return fields


def test_journald_gets_every_extra_as_a_field(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "journal"))
        server.settimeout(10)
        handler = log.JournalHandler(str(tmp_path / "journal"))
        record = logging.makeLogRecord(
            {
                "name": "commands",
                "levelno": logging.WARNING,
                "levelname": "WARNING",
                "msg": "two\nlines",
            }
            | {"utterance": "a\nPRIORITY=0", "client": "car"}
        )
        handler.emit(record)
        handler.close()
        fields = received(server)
    assert fields["PRIORITY"] == "4"
    assert fields["UTTERD_UTTERANCE"] == "a\nPRIORITY=0"
    assert fields["UTTERD_CLIENT"] == "car"
    assert fields["UTTERD_ROOM"] == "commands"
    assert fields["MESSAGE"].startswith("warning commands: two utterance=")
    assert fields["MESSAGE"].endswith("client=car\n  lines")


def test_without_journald_the_line_is_not_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = log.JournalHandler(str(tmp_path / "nobody"))
    handler.emit(logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "still told"}))
    handler.close()
    assert "still told" in capsys.readouterr().err


def test_only_the_stream_of_journald_is_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "stderr").open("w") as file:
        found = os.fstat(file.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        assert log._is_journal(file.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", "1:2")
        assert not log._is_journal(file.fileno())
