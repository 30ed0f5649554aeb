"""Events: every one can be published, and what a client reads of it is all it holds."""

from typing import Any

import msgspec
import pytest

from utterd.daemon import events

CASES: list[events.Event] = [
    events.Accepted(ahead=2),
    events.Started(dac_ns=5, voice="kokoro"),
    events.Progress(start=0, end=9, dac_ns=5),
    events.Word(start=0, end=2, dac_ns=5),
    events.Mark(name="here", dac_ns=5),
    events.Skipped(start=0, end=1, text="☃", reason="no reading"),
    events.Paused(reason="paused", heard_characters=3),
    events.Resumed(start=2, dac_ns=5),
    events.Speaking(speaking=True),
    events.Underrun(missing_ms=12.5, count=1),
    events.Degraded(what="voice x", message="m"),
    events.Recovered(what="voice x", message="m"),
    events.DeviceLost(device="d", reason="missing", message="m", retry_ms=200),
    events.DeviceBack(device="d", rate=48000, latency_ms=12.0),
    events.Ended(dac_ns=5, played_ms=1.5, stages={"received": 1}, durations_ms={"a_to_b": 0.5}),
    events.Cancelled(reason="stopped", heard_characters=1, played_ms=0.0),
    events.Failed(code="internal", message="m", recoverable=False),
    events.Dropped(reason="expired"),
]


def all_events(base: type[events.Event] = events.Event) -> set[type[events.Event]]:
    found = set(base.__subclasses__())
    return found.union(*(all_events(one) for one in found)) - {events.Terminal}


def test_every_event_has_a_case() -> None:
    assert {type(case) for case in CASES} == all_events()


def test_four_events_are_terminal() -> None:
    terminal = {str(one.__struct_config__.tag) for one in events.Terminal.__subclasses__()}
    assert terminal == {"ended", "cancelled", "failed", "dropped"}


@pytest.mark.parametrize("event", CASES, ids=lambda event: type(event).__name__)
def test_an_event_reads_as_json(event: events.Event) -> None:
    topic, body = events.encode(events.of(event, "car", "a"))
    read: dict[str, Any] = msgspec.json.decode(body)
    assert read["event"].encode() == topic
    assert (read["client"], read["id"], read["version"]) == ("car", "a", 1)
    assert msgspec.structs.asdict(event).keys() <= read.keys()
