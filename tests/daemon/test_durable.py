"""The journal is one daemon's at a time, and nobody else reads what is said."""

import os
import stat

import pytest

from utterd.daemon import events
from utterd.daemon.durable import Durable
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.utterance import Utterance


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "journal.sqlite"


def utterance(text):
    command = Speak(text=text, durable=True)
    return Utterance(command=command, client="c", id=text[:20], voice="v", speaker="", order=1)


def test_what_another_daemon_has_is_not_taken_up_and_nothing_goes_beside_it(path):
    first, second = Durable(path), Durable(path)
    first.admit(utterance("held"))
    with pytest.raises(ProtocolError, match="in use by another utterd"):
        second.admit(utterance("mine"))
    third = Durable(path)
    with pytest.raises(Exception, match="in use by another utterd"):
        third.left()
    second.catch_up()
    assert "in use by another utterd" in second.problem
    first.close()
    second.catch_up()
    assert not second.problem
    assert [entry.id for entry in second.left()] == ["held"]
    second.close()


def test_a_daemon_with_nothing_left_keeps_nobody_from_it(path):
    first = Durable(path)
    first.admit(utterance("said"))
    first.see(events.of(events.Dropped(reason="busy"), "c", "said"), closing=False)
    first.close()
    second, third = Durable(path), Durable(path)
    assert not second.left()
    third.admit(utterance("mine"))
    third.close()


def test_what_was_said_can_be_read_by_its_owner_alone_and_not_when_it_is_over(path):
    secret = "the code of the door is 4711 " * 300
    durable = Durable(path)
    old = os.umask(0)
    try:
        durable.admit(utterance(secret))
    finally:
        os.umask(old)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    durable.see(events.of(events.Dropped(reason="busy"), "c", secret[:20]), closing=False)
    durable.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert b"4711" not in path.read_bytes()
