"""The publisher: every event at its time, in order for its utterance, numbered without a gap."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utterd.daemon import events, publisher
from utterd.daemon.publisher import Publisher


class Clock:
    def __init__(self) -> None:
        self.ns = 1000

    def monotonic_ns(self) -> int:
        return self.ns


class Sink:
    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, topic: bytes, body: bytes) -> None:
        self.bodies.append(msgspec.json.decode(body))
        assert self.bodies[-1]["event"].encode() == topic

    @property
    def names(self) -> list[tuple[str, str]]:
        return [(body["id"], body["event"]) for body in self.bodies]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(publisher, "time", clock)
    return clock


def word(id_: str, number: int = 0) -> events.Event:
    return events.Word(id=id_, start=number, end=number + 1, dac_ns=0)


def test_what_is_due_goes_out_at_once(clock: Clock) -> None:
    sink = Sink()
    one = Publisher(sink)
    one.publish(word("a"))
    one.publish(word("a"), clock.ns)
    assert len(sink.bodies) == 2
    assert one.next_ns() == 0
    assert [body["sequence"] for body in sink.bodies] == [1, 2]
    assert {body["monotonic_ns"] for body in sink.bodies} == {clock.ns}


def test_what_lies_ahead_is_held_back(clock: Clock) -> None:
    sink = Sink()
    one = Publisher(sink)
    one.publish(word("a"), 2000)
    assert (sink.bodies, one.next_ns()) == ([], 2000)
    one.release(1999)
    assert sink.bodies == []
    clock.ns = 2000
    one.release(2000)
    assert sink.names == [("a", "word")]
    assert one.next_ns() == 0


def test_none_overtakes_an_earlier_one_of_its_utterance(clock: Clock) -> None:
    sink = Sink()
    one = Publisher(sink)
    one.publish(events.Started(id="a", dac_ns=2000, voice="v"), 2000)
    one.publish(events.Cancelled(id="a", reason="r", heard_characters=0, played_ms=0.0))
    one.publish(word("b"))
    assert sink.names == [("b", "word")]
    clock.ns = 2000
    one.release(clock.ns)
    assert sink.names[1:] == [("a", "started"), ("a", "cancelled")]


def test_a_timer_that_is_late_lets_nothing_overtake(clock: Clock) -> None:
    """What is held and due goes first, though nobody has called `release` yet."""
    sink = Sink()
    one = Publisher(sink)
    one.publish(events.Started(id="a", dac_ns=2000, voice="v"), 2000)
    clock.ns = 2500
    one.publish(word("a"))
    assert sink.names == [("a", "started"), ("a", "word")]


def test_flush_keeps_the_order(clock: Clock) -> None:
    sink = Sink()
    one = Publisher(sink)
    one.publish(word("a", 1), 9000)
    one.publish(word("a", 2), 3000)
    one.publish(word("b"), 5000)
    one.flush()
    assert [(b["id"], b["start"]) for b in sink.bodies] == [("b", 0), ("a", 1), ("a", 2)]
    assert one.next_ns() == 0
    assert one._latest == {}


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(0, 20), st.booleans()),
        max_size=30,
    )
)
def test_order_and_time_under_any_sequence(steps: list[tuple[str, int, int, bool]]) -> None:
    clock, sink = Clock(), Sink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publisher, "time", clock)
        one = Publisher(sink)
        due: dict[int, int] = {}
        for number, (id_, ahead, passed, release) in enumerate(steps):
            due[number] = clock.ns + ahead if ahead > 20 else 0
            one.publish(word(id_, number), due[number])
            clock.ns += passed
            if release:
                one.release(clock.ns)
        clock.ns += 1000
        one.release(clock.ns)
    assert sorted(body["start"] for body in sink.bodies) == list(range(len(steps)))
    assert [body["sequence"] for body in sink.bodies] == list(range(1, len(steps) + 1))
    for body in sink.bodies:
        assert body["monotonic_ns"] >= due[body["start"]]
    for id_ in "ab":
        mine = [body["start"] for body in sink.bodies if body["id"] == id_]
        assert all(a < b for a, b in itertools.pairwise(mine))
