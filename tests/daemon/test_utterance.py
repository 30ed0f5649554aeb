"""The life of one utterance: its states, admission, ids, a full queue."""

import pytest

from tests.daemon.scenes import SHORT, THREE, begun, over, refused, speak
from tests.daemon.stage import Stage
from utterd.daemon import events
from utterd.daemon.protocol import Speak
from utterd.daemon.utterance import (
    LIVING,
    ON_ITS_WAY,
    TRANSITIONS,
    State,
    Stimulus,
    TransitionError,
    Utterance,
)


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
