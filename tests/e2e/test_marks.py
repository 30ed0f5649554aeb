"""SSML's marks and breaks: told at their time at the DAC, wherever they stand."""

import pytest

from tests.daemon_process import DaemonProcess, listening

MS = 1_000_000
NEAR = 25 * MS
"""A device period, and then some."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, voices_dir):
    process = DaemonProcess(
        tmp_path_factory.mktemp("marks") / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null"},
    )
    yield process
    process.stop()


def spoken(daemon: DaemonProcess, body: str) -> tuple[dict[str, int], list[dict]]:
    """Times of the marks by name, and all events."""
    with listening(daemon) as listener, daemon.client("marks") as client:
        text = f"<speak>{body}</speak>"
        id_ = client.call("speak", text=text, format="ssml", marks=True)["id"]
        listener.wait_for(id_)
        events = listener.of(id_)
    assert events[-1]["event"] == "ended"
    times = {e["name"]: e["dac_ns"] for e in events if e["event"] == "mark"}
    assert list(times.values()) == sorted(times.values())
    assert all(at <= events[-1]["dac_ns"] for at in times.values())
    return times, events


def test_marks_between_breaks_are_as_far_apart_as_those_are_long(daemon):
    times, events = spoken(
        daemon,
        '<mark name="first"/><break time="500ms"/>Hello there.'
        '<mark name="a"/><break time="400ms"/><mark name="b"/><break time="300ms"/>'
        '<mark name="c"/>And on.<mark name="d"/><break time="600ms"/><mark name="last"/>',
    )
    assert list(times) == ["first", "a", "b", "c", "d", "last"]
    by_name = {event["event"]: event for event in events}
    assert by_name["started"]["dac_ns"] - times["first"] >= 500 * MS - NEAR
    assert abs(times["b"] - times["a"] - 400 * MS) <= NEAR
    assert abs(times["c"] - times["b"] - 300 * MS) <= NEAR
    assert abs(times["last"] - times["d"] - 600 * MS) <= NEAR
    assert abs(by_name["ended"]["dac_ns"] - times["last"]) <= NEAR


def test_marks_without_words_are_told(daemon):
    times, events = spoken(daemon, '<mark name="only"/><mark name="other"/>')
    assert list(times) == ["only", "other"]
    times, events = spoken(daemon, '<mark name="a"/><break time="700ms"/><mark name="b"/>')
    assert abs(times["b"] - times["a"] - 700 * MS) <= NEAR
    assert abs(events[-1]["played_ms"] - 700) <= NEAR / MS


def test_breaks_at_both_ends_are_played(daemon):
    played = {}
    for body in ("Hello.", 'Hello.<break time="800ms"/>', '<break time="800ms"/>Hello.'):
        _, events = spoken(daemon, body)
        played[body] = events[-1]["played_ms"]
    plain, *others = played.values()
    for with_break in others:
        assert abs(with_break - plain - 800) <= NEAR / MS


def test_what_was_cut_before_the_last_mark_does_not_tell_it(daemon):
    with listening(daemon) as listener, daemon.client("marks") as client:
        text = '<speak>Hello.<mark name="a"/><break time="9s"/><mark name="never"/></speak>'
        id_ = client.call("speak", text=text, format="ssml", marks=True)["id"]
        listener.wait_for(id_, "mark")
        client.call("cancel", id=id_)
        listener.wait_for(id_)
        events = listener.of(id_)
    assert events[-1]["event"] == "cancelled"
    assert [e["name"] for e in events if e["event"] == "mark"] == ["a"]
