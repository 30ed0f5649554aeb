"""Beginnings of the tests of the scheduler: an utterance on a stage, and what came of it."""

from typing import Any

import pytest

from tests.daemon.stage import Stage
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.utterance import Utterance

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
