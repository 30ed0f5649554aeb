"""Texts that come in pieces."""

import pytest

from tests.daemon.scenes import SHORT, over, speak
from tests.daemon.sim_player import MS
from tests.daemon.stage import Stage
from utterd.audio import messages as audio
from utterd.daemon import events
from utterd.daemon.protocol import ProtocolError


def test_a_text_in_pieces_is_spoken_as_it_comes() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a", "今天天气", more=True)
    for piece in ("很好。", "明天也", "很好", "。"):
        stage.run(50)
        stage.scheduler.append("car", "a", piece, stage.now_ns)
        stage.carry_out()
    stage.scheduler.finish("car", "a", stage.now_ns)
    stage.carry_out()
    stage.run(1000)
    assert stage.text_heard("a") == "今天天气很好。明天也很好。"
    assert stage.names("a")[-1] == "ended"
    for late in (
        lambda: stage.scheduler.append("car", "a", "x", stage.now_ns),
        lambda: stage.scheduler.finish("car", "a", stage.now_ns),
    ):
        with pytest.raises(ProtocolError, match="lives"):
            late()
    assert over(stage)


def test_waiting_for_the_rest_of_a_text_is_no_underrun() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a", "今天天气很好。", more=True)
    stage.run(1500)
    assert stage.text_heard("a") == "今天天气很好。"
    stage.scheduler.append("car", "a", "明天也很好。", stage.now_ns)
    stage.scheduler.finish("car", "a", stage.now_ns)
    stage.carry_out()
    stage.run(1500)
    assert stage.text_heard("a") == "今天天气很好。明天也很好。"
    assert "underrun" not in stage.names("a")
    assert stage.scheduler.sounding.text_waits == 1
    speak(stage, "b", SHORT, more=True)
    stage.run(100)
    generation = stage.scheduler.line.way.on_way[0].generation
    stage.scheduler.sounding.player_said(audio.Underrun(generation, -1, 0.0, 2, 1), stage.now_ns)
    stage.scheduler.finish("car", "b", stage.now_ns)
    stage.carry_out()
    stage.run(1000)
    assert [e.count for e in stage.told if isinstance(e, events.Underrun)] == [1]
    assert over(stage)


def test_a_device_that_runs_empty_is_told_though_the_text_has_no_end_yet() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a", "今天天气很好。", more=True)
    stage.run(100)
    generation = stage.scheduler.line.way.on_way[0].generation
    stage.scheduler.sounding.player_said(audio.Underrun(generation, -1, 0.0, 1, 1), stage.now_ns)
    stage.carry_out()
    assert "underrun" in stage.names("a")
    assert stage.scheduler.sounding.text_waits == 0


def test_pieces_for_a_complete_or_too_long_text_are_refused() -> None:
    stage = Stage.set_up("one", max_characters=5)
    speak(stage, "a", SHORT)
    with pytest.raises(ProtocolError) as caught:
        stage.scheduler.append("car", "a", "x", stage.now_ns)
    assert caught.value.code == "bad_request"
    speak(stage, "b", "xxx", more=True)
    with pytest.raises(ProtocolError) as caught:
        stage.scheduler.append("car", "b", "xxx", stage.now_ns)
    assert caught.value.code == "too_long"
    stage.scheduler.append("car", "b", "xx", stage.now_ns)


@pytest.mark.parametrize("text", ["", "今", "今天好。"])
def test_a_text_whose_client_went_away_ends_by_itself(text: str) -> None:
    stage = Stage.set_up("one", stream_flush_ns=100 * MS, stream_end_ns=500 * MS)
    speak(stage, "a", text, more=True)
    stage.run(300)
    assert stage.text_heard("a") == text
    assert stage.living()
    stage.run(600)
    assert stage.names("a")[-1] == "ended"
    assert over(stage)


def test_a_text_of_which_nothing_has_come_holds_nobody_up() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a", "", more=True)
    speak(stage, "b", SHORT)
    stage.run(300)
    assert stage.names("b")[-1] == "ended"
    stage.scheduler.append("car", "a", SHORT, stage.now_ns)
    stage.scheduler.finish("car", "a", stage.now_ns)
    stage.carry_out()
    stage.run(300)
    assert stage.text_heard("a") == SHORT


def test_a_text_in_pieces_that_is_displaced_goes_on_with_all_that_came() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a", "一二三四。五六", more=True)
    stage.run(60)
    speak(stage, "b", SHORT, priority="important")
    stage.scheduler.append("car", "a", "七八。九十", stage.now_ns)
    stage.run(100)
    stage.scheduler.append("car", "a", "百千。", stage.now_ns)
    stage.scheduler.finish("car", "a", stage.now_ns)
    stage.carry_out()
    stage.run(1000)
    assert stage.names("a")[-1] == "ended"
    assert stage.text_heard("a").endswith("五六七八。九十百千。")
