"""What is in the journal is there after a kill at any moment, in order, and only once."""

import signal
import subprocess
import sys

import pytest

from utterd.daemon.journal import Journal, JournalError
from utterd.daemon.protocol import Speak


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "journal.sqlite"


def test_it_keeps_what_was_accepted_in_order(path):
    journal = Journal(path)
    for number in range(5):
        journal.add("reader", f"line{number}", Speak(text=f"第{number}行", durable=True), number)
    journal.remove("reader", "line1")
    journal.progress("reader", "line2", 7)
    journal.close()
    entries = Journal(path).entries()
    assert [e.id for e in entries] == ["line0", "line2", "line3", "line4"]
    assert entries[1].resume_at == 7
    assert entries[1].command == Speak(text="第2行", durable=True)
    assert [e.expires_unix_ns for e in entries] == [0, 2, 3, 4]


def test_text_in_pieces_is_kept_as_far_as_it_came(path):
    journal = Journal(path)
    journal.add("a", "s", Speak(text="今天", more=True, durable=True), 0)
    journal.extend("a", "s", "今天天气", closed=False)
    assert Journal(path).entries()[0].text == "今天天气"


def test_one_id_of_a_client_is_there_once(path):
    journal = Journal(path)
    journal.add("a", "x", Speak(text="1"), 0)
    journal.add("b", "x", Speak(text="2"), 0)
    with pytest.raises(JournalError):
        journal.add("a", "x", Speak(text="3"), 0)


def test_a_kill_loses_nothing_that_was_added(path):
    program = (
        "import sys, os, signal\n"
        "from pathlib import Path\n"
        "from utterd.daemon.journal import Journal\n"
        "from utterd.daemon.protocol import Speak\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for number in range(10**9):\n"
        "    journal.add('c', str(number), Speak(text=str(number)), 0)\n"
        "    print(number, flush=True)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child.stdout:
        told = [int(child.stdout.readline()) for _ in range(50)]
        child.send_signal(signal.SIGKILL)
        told += [int(line) for line in child.stdout.read().split("\n")[:-1]]
    child.wait()
    kept = [int(entry.id) for entry in Journal(path).entries()]
    assert kept[: len(told)] == told
    assert len(kept) <= len(told) + 1


def test_a_damaged_file_is_named(path):
    path.parent.mkdir()
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(JournalError, match=r"journal\.sqlite.*move it away"):
        Journal(path)


def test_an_entry_that_cannot_be_read_does_not_hold_up_the_others(path, caplog):
    journal = Journal(path)
    for id_ in ("bad", "good"):
        journal.add("c", id_, Speak(text=id_), 0)
    journal._database.execute("UPDATE utterance SET command = x'00' WHERE id = 'bad'")
    assert [entry.id for entry in journal.entries()] == ["good"]
    assert "a durable utterance is lost" in caplog.text
    journal.close()
    assert [entry.id for entry in Journal(path).entries()] == ["good"]
