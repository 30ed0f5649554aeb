"""Limits on memory: when a process is to be started anew, and when that would not help."""

import mmap

import pytest

from utterd.daemon import memory
from utterd.daemon.memory import SETTLING_NS, Ceiling, rss_bytes

MB = 1_000_000


class Life:
    """A process whose memory is looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limit_mb: int = 100) -> None:
        self.now_ns = 1_000_000_000_000
        self.ready_ns = self.now_ns
        self.ceiling = Ceiling("player_rss_mb", limit_mb)
        monkeypatch.setattr(memory.time, "monotonic_ns", lambda: self.now_ns)

    def look(self, rss_mb: int, *, after_ns: int = 1_000_000_000) -> str:
        """Some time later it has so much."""
        self.now_ns += after_ns
        return self.ceiling.look("player", self.ready_ns, rss_mb * MB)

    def settle(self, rss_mb: int) -> None:
        """It has been ready for long, with so much."""
        assert self.look(rss_mb) == ""
        assert self.look(rss_mb, after_ns=SETTLING_NS) in ("", self.ceiling.problem)


def test_one_that_grows_over_its_limit_is_named_until_it_shrinks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    life = Life(monkeypatch)
    life.settle(40)
    assert life.look(100) == ""
    assert life.look(101) == "its 101 MB are over limits.player_rss_mb = 100"
    assert life.look(130).startswith("its 130 MB")
    assert "started anew" in life.ceiling.problem
    assert len(caplog.records) == 1
    assert life.look(90) == ""
    assert life.ceiling.problem == ""


def test_one_that_needs_more_from_its_start_is_left_alone_and_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    life = Life(monkeypatch)
    life.settle(120)
    assert [life.look(mb) for mb in (120, 200, 300)] == ["", "", ""]
    assert "needs 120 MB from its start: limits.player_rss_mb = 100 is too low" in (
        life.ceiling.problem
    )
    assert len(caplog.records) == 1


def test_what_it_grows_to_while_it_settles_is_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = Life(monkeypatch)
    assert [life.look(mb) for mb in (10, 60, 90)] == ["", "", ""]
    assert life.look(110, after_ns=SETTLING_NS) != ""


def test_another_life_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(monkeypatch)
    life.settle(40)
    assert life.look(200)
    life.ready_ns = life.now_ns
    assert life.look(45) == ""
    assert life.ceiling.problem == ""
    assert life.look(45, after_ns=SETTLING_NS) == ""
    assert life.look(150)


def test_no_limit_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(monkeypatch, limit_mb=0)
    life.settle(40)
    assert life.look(10_000) == ""


def test_memory_that_is_taken_shows() -> None:
    before = rss_bytes()
    # A mapping of its own: from the heap it could be what an earlier test gave back.
    with mmap.mmap(-1, 64 * MB) as taken:
        taken.write(bytes(64 * MB))
        assert rss_bytes() - before > 50 * MB
