"""Run by test_full_disk.py in a mount namespace: the journal on a small disk that is full."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from utterd.daemon import events
from utterd.daemon.durable import Durable
from utterd.daemon.journal import Journal
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.utterance import Utterance

TEXT = "今天下午三点，在国贸中心有一个会议。"


def fill(folder: Path) -> Path:
    """Leave not one byte."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


def utterance(id_: str, text: str = TEXT) -> Utterance:
    command = Speak(id=id_, text=text, durable=True)
    return Utterance(command, "c", id_, "v", "", 1, text=text, closed=True)


def tell(durable: Durable, id_: str, event: events.Event) -> None:
    durable.see(events.of(event, "c", id_), closing=False)


def refused(call: Callable[[], None]) -> bool:
    try:
        call()
    except ProtocolError as refusal:
        error = refusal
    else:
        return False
    assert error.code == "unavailable", error.code
    assert error.extra["retry_after_ms"], error.extra
    assert "make room" in error.message, error.message
    return True


def every_end_is_written(folder: Path) -> None:
    """What was accepted can be ended, and have its progress written, as often as it likes."""
    durable = Durable(folder / "journal.sqlite")
    durable.admit(utterance("first"))
    fill(folder)
    accepted = []
    for number in range(10_000):
        if refused(lambda: durable.admit(utterance(str(number), 20 * TEXT))):  # noqa: B023
            break
        accepted.append(str(number))
    assert 100 < len(accepted) < 10_000, "the room that there is, is used, and no more"
    assert durable.problem
    for id_ in reversed(accepted):
        tell(durable, id_, events.Progress(start=10**9, end=10**9, dac_ns=0))
        tell(durable, id_, events.Cancelled(reason="cancelled", heard_characters=0, played_ms=0.0))
    assert not durable.behind
    durable.catch_up()
    assert not durable.problem, "there is room again"
    for number in range(500):
        durable.admit(utterance(f"again {number}"))
        tell(durable, f"again {number}", events.Dropped(reason="expired"))
    assert not durable.behind
    os._exit(0)  # as if killed: what is on disk counts


def nothing_comes_again(folder: Path) -> None:
    """After that crash only the one that has not ended is there."""
    fill(folder)
    durable = Durable(folder / "journal.sqlite")
    assert [entry.id for entry in durable.left()] == ["first"]
    tell(durable, "first", events.Dropped(reason="expired"))
    assert not durable.behind
    assert Journal(folder / "journal.sqlite").entries() == []


def full_from_the_start(folder: Path) -> None:
    """Nothing is accepted that could not be ended, until there is room."""
    ballast = fill(folder)
    durable = Durable(folder / "journal.sqlite")
    assert refused(lambda: durable.admit(utterance("a")))
    assert refused(lambda: durable.admit(utterance("a")))
    durable.catch_up()
    assert durable.problem
    os.truncate(ballast, 0)
    durable.catch_up()
    assert not durable.problem
    durable.admit(utterance("a"))
    assert [entry.id for entry in Journal(folder / "journal.sqlite").entries()] == ["a"]


def an_end_that_could_not_be_written_is_written_later(folder: Path) -> None:
    """After an orderly stop others may have taken the log's room."""
    durable = Durable(folder / "journal.sqlite")
    durable.admit(utterance("a"))
    durable.close()
    ballast = fill(folder)
    durable = Durable(folder / "journal.sqlite")
    assert [entry.id for entry in durable.left()] == ["a"]
    tell(durable, "a", events.Cancelled(reason="cancelled", heard_characters=0, played_ms=0.0))
    assert durable.behind == 1
    assert "make room" in durable.problem
    assert refused(lambda: durable.admit(utterance("b")))
    os.truncate(ballast, 0)
    durable.catch_up()
    assert not durable.behind
    assert not durable.problem
    durable.admit(utterance("a"))
    durable.close()
    assert [entry.id for entry in Journal(folder / "journal.sqlite").entries()] == ["a"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("step")
    options = parser.parse_args()
    globals()[options.step](options.folder)
