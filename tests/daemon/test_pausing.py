"""Pause and resume, and what is displaced."""

from tests.daemon.scenes import SHORT, THREE, answer, begun, over, speak
from utterd.daemon import events


def test_a_pause_goes_on_from_the_clause() -> None:
    stage = begun(ms=80)
    ticket = stage.scheduler.pause(stage.now_ns)
    stage.carry_out()
    stage.run(200)
    assert answer(stage, ticket).cancelled == 0
    paused = stage.last("a")
    assert isinstance(paused, events.Paused)
    assert paused.reason == "paused"
    assert 5 < paused.heard_characters < 10
    speak(stage, "b", SHORT)
    speak(stage, "now", SHORT, priority="important")
    stage.run(500)
    assert stage.names("now")[-1] == "ended"
    assert stage.names("b") == ["accepted"]
    stage.scheduler.resume()
    stage.carry_out()
    stage.run(1000)
    assert stage.order_heard() == ["a", "now", "a", "b"]
    assert stage.text_heard("a").endswith("五六七八。九十百千。")
    assert stage.text_heard("a").count("一二三四。") == 1
    (resumed,) = [event for event in stage.told if isinstance(event, events.Resumed)]
    assert resumed.start == 5


def test_what_is_cancelled_in_a_pause_tells_what_was_heard() -> None:
    stage = begun(ms=80)
    stage.scheduler.pause(stage.now_ns)
    stage.carry_out()
    stage.run(50)
    paused = stage.last("a")
    stage.scheduler.cancel(stage.now_ns, "car", "a")
    stage.carry_out()
    cancelled = stage.last("a")
    assert isinstance(paused, events.Paused)
    assert isinstance(cancelled, events.Cancelled)
    assert cancelled.heard_characters == paused.heard_characters
    assert cancelled.played_ms == len(stage.heard)


def test_nothing_passes_what_settles() -> None:
    """A pause that is taken back before the player has answered changes no order."""
    stage = begun()
    speak(stage, "b", SHORT)
    stage.scheduler.pause(stage.now_ns)
    stage.scheduler.resume()
    stage.carry_out()
    stage.run(1000)
    assert stage.order_heard() == ["a", "b"] or stage.order_heard() == ["a", "a", "b"]
    assert stage.names("a")[-1] == stage.names("b")[-1] == "ended"


def test_paused_again_before_it_sounds_is_not_told_twice() -> None:
    stage = begun()
    for _ in range(3):
        stage.scheduler.pause(stage.now_ns)
        stage.carry_out()
        stage.run(50)
        stage.scheduler.resume()
        stage.carry_out()
        stage.work("one", 3)
    stage.run(1000)
    told = [name for name in stage.names("a") if name in ("paused", "resumed")]
    assert told == ["paused", "resumed"]


def test_samples_for_clients_are_not_held_up_by_what_is_paused() -> None:
    stage = begun(THREE * 10)
    assert stage.scheduler.line.needs("one") is True
    stage.scheduler.pause(stage.now_ns)
    stage.carry_out()
    stage.run(100)
    assert stage.scheduler.line.waiting
    assert stage.scheduler.line.needs("one") is False


def test_displaced_twice_in_a_row_skips_and_repeats_nothing() -> None:
    stage = begun(ms=60)
    for id_ in ("b", "c"):
        speak(stage, id_, SHORT, priority="important")
        stage.run(100)
    speak(stage, "d", SHORT, priority="important")
    speak(stage, "e", SHORT, priority="important")
    stage.run(2000)
    assert stage.names("a")[-1] == "ended"
    heard = stage.text_heard("a")
    places = [heard.index(clause) for clause in ("一二三四。", "五六七八。", "九十百千。")]
    assert places == sorted(places)
    assert heard.count("。") == 3
    assert over(stage)


def test_cancelled_while_displaced_and_settling() -> None:
    stage = begun()
    speak(stage, "b", SHORT, priority="important")
    ticket = stage.scheduler.cancel(stage.now_ns, "car", "a")
    stage.carry_out()
    assert ticket not in stage.silent
    stage.run(500)
    assert answer(stage, ticket).cancelled == 1
    assert stage.names("a") == ["accepted", "started", "cancelled"]
    assert stage.names("b")[-1] == "ended"
