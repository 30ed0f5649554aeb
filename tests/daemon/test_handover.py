"""What one daemon leaves to the next."""

import stat
from pathlib import Path

import pytest

from utterd.daemon import events
from utterd.daemon.handover import Handover, leave, take
from utterd.daemon.protocol import Speak
from utterd.daemon.records import Records


def remembered() -> Records:
    records = Records()
    records.ended(("car", "a"), events.of(events.Dropped(reason="expired"), "car", "a"))
    records.ended(
        ("car", "b"), events.Cancelled(reason="stopped", heard_characters=3, played_ms=120.5)
    )
    records.ended(("desk", "a"), events.Failed(code="internal", message="x", recoverable=False))
    records.ended(
        ("desk", "b"), events.Ended(dac_ns=7, played_ms=1.0, stages={"a": 1}, durations_ms={})
    )
    records.spoke("car", Speak(text="你好", priority="important"))
    return records


def handover() -> Handover:
    return Handover.of(remembered(), reason="too large", renewals=2, gain=0.5, voice="kokoro/x")


def test_all_of_it_comes_back_once(tmp_path: Path) -> None:
    path = tmp_path / "data" / "handover"
    leave(path, handover())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = take(path)
    assert found == handover()
    records = Records()
    found.recall(records)
    assert records.terminal == remembered().terminal
    assert records.last_of == remembered().last_of
    assert not path.exists()
    assert take(path) is None


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x80", b"rubbish"])
def test_rubbish_is_told_removed_and_otherwise_nothing(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "handover"
    path.write_bytes(content)
    assert take(path) is None
    assert not path.exists()
    assert "nothing is taken over" in caplog.text


def test_where_it_cannot_be_written_the_daemon_goes_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    leave(tmp_path / "file" / "handover", handover())
    assert "nothing is handed over" in caplog.text
