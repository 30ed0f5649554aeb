"""Workers, voices, devices and players that are lost."""

import pytest

from tests.daemon.scenes import SHORT, THREE, begun, over, speak
from tests.daemon.stage import Stage
from utterd.daemon import events


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
