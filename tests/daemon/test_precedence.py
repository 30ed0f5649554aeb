"""The five priorities of SSIP: who cuts whom, rule by rule, on the stage."""

import pytest

from tests.daemon.stage import Stage
from utterd.daemon import events
from utterd.daemon.precedence import CUTS_PROGRESS, TABLE, Effect, effect_on
from utterd.daemon.protocol import Speak
from utterd.daemon.utterance import Priority

LONG = "一二三四五六七八九十。" * 4
P = Priority

ON_WAY: dict[tuple[Priority, Priority], str] = {
    (P.important, P.important): "waits",
    (P.important, P.message): "displaces",
    (P.important, P.text): "displaces",
    (P.important, P.notification): "cancels",
    (P.important, P.progress): "cancels",
    (P.message, P.important): "waits",
    (P.message, P.message): "waits",
    (P.message, P.text): "displaces",
    (P.message, P.notification): "cancels",
    (P.message, P.progress): "cancels",
    (P.text, P.important): "waits",
    (P.text, P.message): "waits",
    (P.text, P.text): "cancels",
    (P.text, P.notification): "cancels",
    (P.text, P.progress): "cancels",
    (P.notification, P.important): "is dropped",
    (P.notification, P.message): "is dropped",
    (P.notification, P.text): "is dropped",
    (P.notification, P.notification): "cancels",
    (P.notification, P.progress): "cancels",
    (P.progress, P.important): "waits",
    (P.progress, P.message): "waits",
    (P.progress, P.text): "waits",
    (P.progress, P.notification): "waits",
    (P.progress, P.progress): "waits",
}
"""(new, sounding): what the new one does."""


def test_every_pair_has_a_case() -> None:
    assert set(ON_WAY) == {(new, there) for new in P for there in P}


def speak(stage: Stage, id_: str, text: str = LONG, **fields: object) -> None:
    command = Speak(id=id_, text=text, **fields)
    stage.scheduler.speak(command, "car", ("one", ""), stage.now_ns, stage.now_ns)
    stage.carry_out()


def sounding(priority: str, **fields: object) -> Stage:
    stage = Stage.set_up("one")
    speak(stage, "old", priority=priority, **fields)
    stage.run(150)
    assert stage.names("old") == ["accepted", "started"]
    return stage


@pytest.mark.parametrize(("new", "there"), ON_WAY, ids=lambda p: p.name)
def test_on_one_that_sounds(new: Priority, there: Priority) -> None:
    stage = sounding(there.name)
    speak(stage, "new", text="早。", priority=new.name)
    stage.run(3000)
    does = ON_WAY[new, there]
    expected = {
        "waits": (["ended"], ["started", "ended"], ["old", "new"]),
        "displaces": (["paused", "resumed", "ended"], ["started", "ended"], ["old", "new", "old"]),
        "cancels": (["cancelled"], ["started", "ended"], ["old", "new"]),
        "is dropped": (["ended"], ["dropped"], ["old"]),
    }[does]
    assert stage.names("old")[2:] == expected[0]
    assert stage.names("new")[1:] == expected[1]
    assert stage.order_heard() == expected[2]
    assert not any(stage.tables().values())


@pytest.mark.parametrize("new", P, ids=lambda p: p.name)
def test_one_that_may_not_be_interrupted_is_heard_out(new: Priority) -> None:
    for there in P:
        stage = sounding(there.name, interruptible=False)
        speak(stage, "new", text="早。", priority=new.name)
        stage.run(3000)
        assert stage.names("old")[-1] == "ended"
        assert stage.text_heard("old") == LONG
        assert stage.names("new")[-1] == ("dropped" if new is P.notification else "ended")


@pytest.mark.parametrize("new", P, ids=lambda p: p.name)
def test_a_progress_report_that_waits_gives_way_to_the_next_only(new: Priority) -> None:
    stage = sounding("important")
    speak(stage, "waits", priority="progress")
    speak(stage, "new", text="早。", priority=new.name)
    stage.run(3000)
    assert stage.names("waits")[1:] == (
        ["cancelled"] if new is P.progress else ["started", "ended"]
    )
    order = {P.progress: ["old", "new"], P.notification: ["old", "waits"]}
    assert stage.order_heard() == order.get(new, ["old", "new", "waits"])


def test_one_that_waits_in_the_ring_is_not_dropped_by_a_higher_one() -> None:
    stage = sounding("important")
    speak(stage, "waits", priority="message", on_interrupt="drop")
    stage.run(50)
    assert [u.id for u in stage.scheduler.line.way.on_way] == ["old", "waits"]
    speak(stage, "new", text="早。", priority="important")
    stage.run(3000)
    assert stage.names("waits") == ["accepted", "started", "ended"]
    assert stage.order_heard() == ["old", "new", "waits"]


def test_texts_and_notifications_that_wait_are_cancelled_too() -> None:
    stage = sounding("important")
    speak(stage, "waits", priority="text")
    speak(stage, "new", text="早。", priority="text")
    stage.run(3000)
    assert stage.names("waits") == ["accepted", "cancelled"]
    assert stage.names("new")[-1] == "ended"


def test_those_that_wait_are_not_displaced() -> None:
    stage = sounding("important")
    speak(stage, "waits", text="早。", priority="message")
    speak(stage, "new", text="早。", priority="important")
    stage.run(3000)
    assert stage.names("waits") == ["accepted", "started", "ended"]
    assert stage.order_heard() == ["old", "new", "waits"]


def test_the_rule_for_progress_does_not_depend_on_the_table() -> None:
    for new in P:
        expected = Effect.CANCEL if new in CUTS_PROGRESS else Effect.NONE
        assert effect_on(new, P.progress, sounds=True) is expected
        assert effect_on(new, P.progress, sounds=False) is TABLE.get((new, P.progress), Effect.NONE)


@pytest.mark.parametrize(
    ("on_interrupt", "names", "heard_again"),
    [
        ("resume", ["paused", "resumed", "ended"], 1),
        ("restart", ["paused", "resumed", "ended"], 2),
        ("drop", ["cancelled"], 1),
    ],
)
def test_what_becomes_of_a_displaced_one(
    on_interrupt: str, names: list[str], heard_again: int
) -> None:
    stage = Stage.set_up("one")
    speak(stage, "old", text="一二三。四五六。七八九。", on_interrupt=on_interrupt)
    stage.run(70)
    speak(stage, "new", text="早。", priority="important")
    stage.run(2000)
    assert stage.names("old")[2:] == names
    assert stage.text_heard("old").count("一二三。") == heard_again
    if on_interrupt == "drop":
        cancelled = stage.last("old")
        assert isinstance(cancelled, events.Cancelled)
        assert cancelled.reason == "displaced"
    else:
        assert stage.text_heard("old").endswith("四五六。七八九。")
