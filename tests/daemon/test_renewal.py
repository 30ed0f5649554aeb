"""When a daemon that has grown is to be replaced, and what is told of it to the next."""

from pathlib import Path

import pytest

from utterd.daemon import memory, renewal
from utterd.daemon.memory import SETTLING_NS
from utterd.daemon.records import Records
from utterd.daemon.renewal import IDLE_CHECKS, Renewal

MB = 1_000_000


@pytest.fixture
def grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Renewal:
    """One that has settled at 50 MB, and has 120 now, over its limit of 100."""
    now_ns, held = 1_000_000_000, [50 * MB]
    monkeypatch.setattr(memory.time, "monotonic_ns", lambda: now_ns)
    monkeypatch.setattr(renewal, "rss_bytes", lambda: held[0])
    one = Renewal(tmp_path / "handover", 100, began_ns=now_ns)
    now_ns += SETTLING_NS
    assert not one.is_due(idle=False)
    held[0] = 120 * MB
    return one


def test_it_is_due_once_when_nothing_was_to_do_for_long_enough(grown: Renewal) -> None:
    idle = [True] * (IDLE_CHECKS - 1) + [False] + [True] * (IDLE_CHECKS + 2)
    due = [number for number, one in enumerate(idle, start=1) if grown.is_due(idle=one)]
    assert due == [2 * IDLE_CHECKS]
    assert grown.reason == "its 120 MB are over limits.daemon_rss_mb = 100"


def test_what_was_put_off_is_due_again(grown: Renewal) -> None:
    assert [grown.is_due(idle=True) for _ in range(IDLE_CHECKS)][-1]
    grown.put_off()
    assert [grown.is_due(idle=idle) for idle in (False, *[True] * IDLE_CHECKS)][-1]


def test_the_next_one_knows_why_and_how_often(grown: Renewal, tmp_path: Path) -> None:
    assert [grown.is_due(idle=True) for _ in range(IDLE_CHECKS)][-1]
    grown.hand_over(Records(), gain=0.5, voice="kokoro")
    following = Renewal(tmp_path / "handover", 100, began_ns=1)
    handover = following.take_over()
    assert handover is not None
    assert (handover.gain, handover.voice) == (0.5, "kokoro")
    assert (following.count, following.because) == (1, grown.reason)
    assert Renewal(tmp_path / "handover", 100, began_ns=1).take_over() is None


def test_one_that_is_stopped_in_the_last_moment_leaves_nothing(
    grown: Renewal, tmp_path: Path
) -> None:
    grown.hand_over(Records(), gain=0.5, voice="kokoro")
    grown.take_back()
    assert not list(tmp_path.iterdir())
