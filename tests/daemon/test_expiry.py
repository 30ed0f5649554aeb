"""What waits too long, or was replaced: expiry, keys, queue modes."""

from tests.daemon.scenes import SHORT, THREE, begun, over, speak
from utterd.daemon import events


def test_one_that_does_not_sound_in_time_is_dropped() -> None:
    stage = begun(THREE * 2)
    speak(stage, "late", ttl_ms=100)
    speak(stage, "patient", SHORT, ttl_ms=5000)
    stage.run(3000)
    assert stage.names("late") == ["accepted", "dropped"]
    dropped = stage.last("late")
    assert isinstance(dropped, events.Dropped)
    assert dropped.reason == "expired"
    assert stage.names("patient") == ["accepted", "started", "ended"]
    assert "late" not in stage.order_heard()


def test_one_that_sounded_in_time_does_not_expire_while_displaced() -> None:
    stage = begun(ttl_ms=100)
    speak(stage, "b", priority="important")
    stage.run(2000)
    assert stage.names("a")[-1] == "ended"


def test_of_one_key_only_the_newest_waits() -> None:
    stage = begun()
    for id_ in ("b", "c", "d"):
        speak(stage, id_, SHORT, key="song", priority="text")
        speak(stage, f"other-{id_}", SHORT, key="song", client=id_)
    stage.run(4000)
    assert stage.names("b")[1] == stage.names("c")[1]
    assert stage.names("c")[1] in ("dropped", "cancelled")
    assert stage.names("d")[-1] == "ended"


def test_one_that_was_heard_in_part_is_cancelled_not_dropped_by_its_key() -> None:
    stage = begun(key="k")
    speak(stage, "b", priority="important")
    stage.run(50)
    assert stage.names("a")[-1] == "paused"
    speak(stage, "c", SHORT, key="k")
    stage.run(2000)
    cancelled = stage.last("a")
    assert isinstance(cancelled, events.Cancelled)
    assert cancelled.reason == "superseded"
    assert cancelled.heard_characters >= 5


def test_flush_cancels_all_of_one_s_own_with_and_without_a_key() -> None:
    for key in ("", "k"):
        stage = begun(THREE * 3)
        for id_ in ("b", "c"):
            speak(stage, id_, key=key)
        speak(stage, "other", SHORT, client="other")
        speak(stage, "stays", SHORT, interruptible=False)
        speak(stage, "new", SHORT, queue="flush", key=key)
        stage.run(2000)
        assert {stage.names(id_)[-1] for id_ in ("a", "b", "c")} <= {"cancelled", "dropped"}
        assert stage.order_heard() == ["a", "other", "stays", "new"]
        assert over(stage)


def test_replace_cancels_only_what_sounds() -> None:
    stage = begun(THREE * 3)
    speak(stage, "b", SHORT)
    speak(stage, "new", SHORT, queue="replace")
    stage.run(1000)
    assert stage.names("a")[-1] == "cancelled"
    assert stage.order_heard() == ["a", "b", "new"]
