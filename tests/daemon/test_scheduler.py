"""The scheduler, rule by rule: admission, expiry, keys, texts in pieces, losses, tickets."""

from typing import Any

import pytest

from tests.daemon.stage import MS, Stage
from utterd.audio import messages as audio
from utterd.daemon import events
from utterd.daemon.cuts import SETTLE_NS
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.utterance import (
    LIVING,
    ON_ITS_WAY,
    TRANSITIONS,
    State,
    Stimulus,
    TransitionError,
    Utterance,
)
from utterd.engine import messages as engine

THREE = "一二三四。五六七八。九十百千。"
SHORT = "早。"


def speak(
    stage: Stage,
    id_: str,
    text: str = THREE,
    client: str = "car",
    voice: str = "one",
    **fields: Any,
) -> Utterance:
    command = Speak(id=id_, text=text, **fields)
    found = stage.scheduler.speak(command, client, (voice, ""), stage.now_ns, stage.now_ns)
    stage.carry_out()
    return found


def refused(stage: Stage, *arguments: Any, **fields: Any) -> ProtocolError:
    before = stage.tables()
    with pytest.raises(ProtocolError) as caught:
        speak(stage, *arguments, **fields)
    assert stage.tables() == before, "what is refused touches nothing"
    return caught.value


def begun(text: str = THREE, ms: int = 70, **fields: Any) -> Stage:
    """One utterance that sounds."""
    stage = Stage.set_up("one")
    speak(stage, "a", text, **fields)
    stage.run(ms)
    stage.deliver()
    assert stage.names("a")[:2] == ["accepted", "started"]
    assert stage.living()
    return stage


def answer(stage: Stage, ticket: int) -> Any:
    assert ticket in stage.silent
    return stage.silent[ticket][0]


def over(stage: Stage) -> bool:
    return not any(stage.tables().values())


# ---- states ----


def test_what_the_table_does_not_list_raises_and_changes_nothing() -> None:
    for state in State:
        for stimulus in Stimulus:
            utterance = Utterance(Speak(text="x"), "c", "i", "v", "", 1, state=state)
            following = TRANSITIONS.get((state, stimulus))
            if following is None:
                with pytest.raises(TransitionError):
                    utterance.apply(stimulus)
            else:
                utterance.apply(stimulus)
            assert utterance.state is (following or state)
            assert state in LIVING or following is None, "nothing lives again"


def test_every_living_state_can_be_cancelled_and_can_fail() -> None:
    for state in LIVING:
        assert TRANSITIONS[state, Stimulus.CANCEL] is State.CANCELLED
        assert TRANSITIONS[state, Stimulus.FAIL] is State.FAILED
    assert ON_ITS_WAY < LIVING


# ---- one utterance ----


def test_the_life_of_an_utterance() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a", marks=True)
    stage.run(1000)
    names = stage.names("a")
    assert names[0] == "accepted"
    assert names[-1] == "ended"
    assert [name for name in names if name not in ("progress", "word", "mark")] == [
        "accepted",
        "started",
        "ended",
    ]
    assert stage.text_heard("a") == THREE
    words = [event for event in stage.told if isinstance(event, events.Word)]
    assert [(w.start, w.end) for w in words] == [(n, n + 1) for n in range(len(THREE))]
    first = {s.character: s.dac_ns for s in reversed(stage.heard) if s.character >= 0}
    assert [w.dac_ns for w in words] == [first[n] for n in range(len(THREE))]
    ended = stage.last("a")
    assert isinstance(ended, events.Ended)
    assert ended.dac_ns == stage.heard[-1].dac_ns
    assert ended.played_ms == len(stage.heard)
    assert {"received", "admitted", "encoded", "first_sound", "last_sound"} <= ended.stages.keys()
    assert "received_to_first_sound" in ended.durations_ms
    assert over(stage)


def test_an_utterance_without_a_name_gets_a_free_one() -> None:
    stage = Stage.set_up("one")
    speak(stage, "u2")
    names = [speak(stage, "").id for _ in range(3)]
    assert len({"u2", *names}) == 4


def test_bad_speaking_is_refused() -> None:
    stage = Stage.set_up("one", max_characters=10)
    assert refused(stage, "a", " \n").field == "text"
    assert refused(stage, "a", "x" * 11).code == "too_long"
    assert refused(stage, "a", "<speak/>", more=True, format="ssml").field == "more"
    speak(stage, "a", SHORT)
    error = refused(stage, "a", SHORT)
    assert (error.code, error.field) == ("bad_request", "id")
    speak(stage, "a", SHORT, client="other")


def test_an_id_is_free_again_when_its_utterance_is_over() -> None:
    stage = begun()
    assert refused(stage, "a", SHORT).field == "id"
    stage.run(1000)
    speak(stage, "a", SHORT)
    stage.run(200)
    assert stage.names("a").count("ended") == 2


def test_a_full_queue_says_when_to_come_again() -> None:
    stage = Stage.set_up("one", max_waiting=2)
    stage.scheduler.pause(stage.now_ns)
    speak(stage, "a", priority="text", key="k")
    speak(stage, "b", client="other")
    error = refused(stage, "c")
    assert error.code == "queue_full"
    assert 200 <= error.extra["retry_after_ms"] <= 10_000
    speak(stage, "d", key="k")  # takes the place of the one with its key
    speak(stage, "e", client="other", queue="flush")
    assert [u.id for u in stage.scheduler.line.waiting] == ["d", "e"]


# ---- expiry and keys ----


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


# ---- queue modes ----


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


# ---- cancelling ----


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


# ---- late and odd messages ----


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


# ---- pause ----


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


# ---- texts in pieces ----


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


# ---- losses ----


def test_a_lost_worker_s_text_goes_on_where_the_ring_ends() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a", THREE * 2)
    stage.work("one", 5)
    stage.deliver()
    stage.pass_ms(40)
    stage.kill("one")
    stage.deliver()
    assert stage.voices["one"].wanted
    stage.pass_ms(200)
    stage.ready("one")
    stage.run(2000)
    assert stage.text_heard("a") == THREE * 2
    assert stage.names("a")[-1] == "ended"
    assert "underrun" in stage.names("a")
    assert over(stage)


def test_a_worker_lost_after_it_finished_changes_nothing() -> None:
    stage = begun(ms=50)
    assert stage.tables()["writing"] == 0
    stage.kill("one")
    stage.deliver()
    stage.run(1000)
    assert stage.names("a")[-1] == "ended"
    assert stage.text_heard("a") == THREE
    assert not [name for name in stage.names() if name == "failed"]


def test_a_text_that_kills_two_workers_fails_and_the_next_is_spoken() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a")
    speak(stage, "b", SHORT)
    for _ in range(2):
        stage.work("one", 1)
        stage.kill("one")
        stage.deliver()
        stage.ready("one")
    stage.run(1000)
    failed = stage.last("a")
    assert isinstance(failed, events.Failed)
    assert (failed.code, failed.recoverable) == ("internal", False)
    assert stage.names("b")[-1] == "ended"
    assert over(stage)


def test_a_worker_that_dies_while_it_loads_costs_no_try() -> None:
    stage = Stage.set_up("one")
    speak(stage, "a")
    stage.work("one", 1)
    stage.kill("one")
    stage.deliver()
    for _ in range(3):
        stage.scheduler.worker_lost("one", stage.ring.written, stage.now_ns)
    stage.ready("one")
    stage.run(1000)
    assert stage.names("a")[-1] == "ended"


def test_a_text_whose_worker_is_killed_again_and_again_is_said_where_it_gets_on() -> None:
    stage = begun(THREE, ms=50)
    for _ in range(6):
        stage.kill("one")
        stage.deliver()
        stage.ready("one")
        before = stage.ring.written
        while stage.ring.written == before:
            stage.work("one", 1)
            stage.run(10)
            if "ended" in stage.names("a"):
                break
    stage.run(2000)
    assert stage.names("a")[-1] == "ended"
    assert stage.text_heard("a") == THREE
    assert over(stage)


def test_a_broken_voice_fails_what_needs_it_only() -> None:
    stage = begun(THREE, ms=50)
    speak(stage, "b")
    speak(stage, "c", SHORT, voice="two")
    stage.deliver()
    stage.scheduler.pause(stage.now_ns)  # so that b is not written ahead
    stage.scheduler.resume()
    stage.carry_out()
    stage.broken("one")
    stage.ready("two")
    stage.run(2000)
    failed = stage.last("b")
    assert isinstance(failed, events.Failed)
    assert (failed.code, failed.recoverable) == ("unavailable", True)
    assert stage.names("c")[-1] == "ended"
    assert over(stage)


def test_what_is_wholly_in_the_ring_is_heard_though_its_voice_broke() -> None:
    stage = begun(THREE, ms=50)
    stage.broken("one")
    stage.run(1000)
    assert stage.names("a")[-1] == "ended"
    assert stage.text_heard("a") == THREE


def test_a_voice_that_broke_in_the_middle_blocks_no_other() -> None:
    stage = Stage.set_up("one", "two")
    speak(stage, "a", THREE * 10)
    stage.work("one", 3)
    speak(stage, "b", SHORT, voice="two")
    stage.broken("one")
    stage.run(1000)
    assert stage.names("a")[-1] == "failed"
    assert stage.names("b")[-1] == "ended"
    assert over(stage)


def test_a_failure_of_one_text_is_that_text_s_only() -> None:
    stage = Stage.set_up("one")
    worker = stage.voices["one"].worker
    assert worker is not None
    worker.fails = True
    speak(stage, "a")
    speak(stage, "b", SHORT)
    stage.run(500)
    assert stage.names("a") == ["accepted", "failed"]
    assert stage.names("b")[-1] == "ended"


def test_a_lost_device_stops_the_words_and_the_place() -> None:
    stage = begun(marks=True)
    stage.lose_device()
    heard = stage.names("a").count("word")
    stage.run(1000)
    assert stage.names("a").count("word") == heard
    speak(stage, "b", SHORT, priority="important")
    stage.run(300)
    stage.bring_sound_back()
    stage.run(2000)
    assert set(stage.text_heard("a")) == set(THREE)
    assert stage.names("a")[-1] == "ended"


@pytest.mark.parametrize("followed", [True, False])
def test_the_end_that_a_dead_player_did_not_tell(followed: bool) -> None:
    stage = begun(SHORT, ms=10)
    if followed:
        speak(stage, "b", SHORT)
        stage.work_all(10)
        stage.deliver_worker("one")
    stage.pass_ms(20)
    stage.kill_player(told=False)
    stage.bring_sound_back()
    stage.run(500)
    assert stage.names("a")[-1] == "ended"
    assert over(stage)


def test_a_new_player_goes_on_where_the_old_one_stopped() -> None:
    stage = begun()
    stage.kill_player(told=True)
    stage.run(200)
    stage.bring_sound_back()
    stage.run(1000)
    assert stage.text_heard("a") == THREE
    assert stage.names("a") == ["accepted", "started", "ended"]


def test_the_ring_s_table_of_revoked_generations_is_never_overrun() -> None:
    """It has 256 places: no more may lie between the first on its way and the next."""
    stage = begun(THREE * 10)
    for number in range(300):
        speak(stage, f"b{number}", SHORT)
        stage.work("one", 3)
        stage.deliver_worker("one")
        stage.scheduler.cancel(stage.now_ns, "car", f"b{number}")
        stage.carry_out()
        first = stage.scheduler.line.way.on_way[0].generation
        assert max(stage.spoken_by) - first < 256
    stage.run(4000)
    assert stage.names("a")[-1] == "ended"
    assert stage.order_heard() == ["a"]


def test_two_voices_take_turns_at_the_ring() -> None:
    stage = Stage.set_up("one", "two")
    for number in range(6):
        speak(stage, f"{number}", THREE, voice=("one", "two")[number % 2])
    for _ in range(300):
        stage.work("one", 1)
        stage.work("two", 2)
        stage.deliver()
        stage.pass_ms(10)
    assert stage.order_heard() == [str(number) for number in range(6)]
    assert over(stage)


def test_the_end_of_the_daemon_ends_everything_at_once() -> None:
    stage = begun()
    speak(stage, "b")
    speak(stage, "c", priority="important")
    speak(stage, "d", "今", more=True)
    stage.scheduler.close(stage.now_ns)
    stage.carry_out()
    assert {stage.names(id_)[-1] for id_ in "abcd"} == {"cancelled"}
    cancelled = stage.last("a")
    assert isinstance(cancelled, events.Cancelled)
    assert cancelled.reason == "shutdown"
    assert cancelled.heard_characters > 0
    left = stage.tables()
    assert [left[name] for name in ("known", "waiting", "settling", "tickets")] == [0] * 4


def test_what_is_over_is_remembered_for_a_while() -> None:
    stage = begun(SHORT, ms=10)
    stage.run(500)
    records = stage.scheduler.line.records
    assert isinstance(records.terminal["car", "a"], events.Ended)
    assert records.counts == {"ended": 1}
    assert records.last_of["car"].text == SHORT
    assert stage.scheduler.line.snapshot()["ended"] == {"ended": 1}
