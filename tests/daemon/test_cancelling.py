"""Cancel and stop, and messages that come after them."""

import pytest

from tests.daemon.scenes import SHORT, answer, begun, over, speak
from tests.daemon.sim_player import MS
from tests.daemon.stage import Stage
from utterd.audio import messages as audio
from utterd.daemon import events
from utterd.daemon.cuts import SETTLE_NS
from utterd.daemon.protocol import ProtocolError
from utterd.engine import messages as engine


def test_a_cancel_is_answered_when_it_is_silent() -> None:
    stage = begun()
    ticket = stage.scheduler.cancel(stage.now_ns, "car", "a")
    stage.carry_out()
    assert ticket not in stage.silent
    stage.run(30)
    silent = answer(stage, ticket)
    assert silent.cancelled == 1
    assert silent.silent_ns > stage.heard[-1].dac_ns
    cancelled = stage.last("a")
    assert isinstance(cancelled, events.Cancelled)
    heard = stage.heard[-1].character + 1
    assert cancelled.heard_characters == heard
    assert cancelled.played_ms == len(stage.heard)
    assert over(stage)


def test_a_second_cancel_waits_for_the_silence_of_the_first() -> None:
    stage = begun()
    tickets = [stage.scheduler.cancel(stage.now_ns, "car") for _ in range(2)]
    tickets.append(stage.scheduler.stop(stage.now_ns))
    stage.carry_out()
    assert not stage.silent
    stage.run(30)
    assert [answer(stage, ticket).cancelled for ticket in tickets] == [1, 0, 0]
    with pytest.raises(ProtocolError, match="lives"):
        stage.scheduler.cancel(stage.now_ns, "car", "a")


def test_a_cancel_reaches_only_its_client() -> None:
    stage = begun()
    speak(stage, "b", client="other")
    with pytest.raises(ProtocolError) as caught:
        stage.scheduler.cancel(stage.now_ns, "car", "b")
    assert caught.value.code == "unknown_id"
    stage.scheduler.cancel(stage.now_ns, "car")
    stage.carry_out()
    stage.run(1000)
    assert stage.names("a")[-1] == "cancelled"
    assert stage.names("b")[-1] == "ended"
    speak(stage, "c")
    speak(stage, "d", client="other")
    stage.scheduler.cancel(stage.now_ns, "car", everyone=True)
    stage.carry_out()
    stage.run(300)
    assert {stage.names(id_)[-1] for id_ in "cd"} == {"cancelled"}


def test_a_cancel_of_nothing_is_answered_at_once() -> None:
    stage = Stage.set_up("one")
    ticket = stage.scheduler.cancel(stage.now_ns, "car")
    stage.carry_out()
    assert answer(stage, ticket).cancelled == 0


def test_samples_in_the_ring_count_before_their_worker_s_word_of_them() -> None:
    """Else the reply would come while they sound."""
    stage = Stage.set_up("one")
    speak(stage, "a")
    stage.work("one", 2)
    stage.pass_ms(20)
    ticket = stage.scheduler.cancel(stage.now_ns, "car")
    stage.carry_out()
    assert ticket not in stage.silent
    stage.pass_ms(10)
    stage.deliver()
    assert answer(stage, ticket).silent_ns > stage.heard[-1].dac_ns


def test_stop_silences_whoever_speaks_and_the_next_follows() -> None:
    stage = begun()
    speak(stage, "b", SHORT, client="other")
    ticket = stage.scheduler.stop(stage.now_ns)
    stage.carry_out()
    stage.run(500)
    assert answer(stage, ticket).cancelled == 1
    assert stage.names("a")[-1] == "cancelled"
    assert stage.names("b")[-1] == "ended"


def test_messages_of_a_cancelled_generation_lead_to_nothing() -> None:
    stage = begun()
    (generation,) = stage.spoken_by
    stage.scheduler.cancel(stage.now_ns, "car")
    stage.carry_out()
    stage.run(50)
    before = stage.names()
    for late in (
        engine.Segment(generation, 9, 0, 1, 0, 10, [], [], [engine.Skipped(0, 1, "x", "y")], True),
        engine.Finished(generation, 10, 1.0, 1.0),
        engine.Abandoned(generation, 10),
        engine.Failed(generation, "internal", "late", 10),
        engine.FirstAudio(generation, 1, 2, 3, 4, 5, 6),
        engine.Finished(777, 10, 1.0, 1.0),
    ):
        stage.scheduler.worker_said(late, stage.now_ns)
    for odd in (
        audio.Started(generation, 1, 1),
        audio.Anchor(generation, 5, 1),
        audio.Underrun(generation, 5, 9.0, 1, 1),
        audio.Ended(generation, 10, 1),
        audio.Dropped(generation, 10, 1),
        audio.Dropped(777, 10, 1),
        audio.Ended(777, 10, 1),
    ):
        stage.scheduler.sounding.player_said(odd, stage.now_ns)
    stage.carry_out()
    assert stage.names() == before
    assert over(stage)


def test_the_end_of_what_was_cancelled_meanwhile_answers_at_once() -> None:
    stage = begun(SHORT, ms=10)
    stage.pass_ms(30)  # its last sample is handed over, nobody has said so yet
    ticket = stage.scheduler.cancel(stage.now_ns, "car")
    stage.carry_out()
    stage.deliver()
    assert answer(stage, ticket).silent_ns == stage.heard[-1].dac_ns
    assert stage.names("a") == ["accepted", "started", "cancelled"]
    assert over(stage)


def test_what_ended_while_it_was_displaced_ended() -> None:
    stage = begun(SHORT, ms=10)
    stage.pass_ms(30)
    speak(stage, "b", SHORT, priority="important")
    stage.run(300)
    assert stage.names("a") == ["accepted", "started", "ended"]
    assert stage.text_heard("a") == SHORT
    assert over(stage)


def test_a_silent_player_holds_no_answer_up_for_long() -> None:
    stage = begun()
    player, stage.player = stage.player, None
    ticket = stage.scheduler.cancel(stage.now_ns, "car")
    stage.carry_out()
    stage.pass_ms(SETTLE_NS // MS - 10)
    assert ticket not in stage.silent
    stage.pass_ms(20)
    assert answer(stage, ticket).cancelled == 1
    cancelled = stage.last("a")
    assert isinstance(cancelled, events.Cancelled)
    assert 0 < cancelled.heard_characters <= stage.heard[-1].character + 1
    assert player is not None
    assert over(stage) or stage.tables()["writing"]
