"""The desk: samples back to clients, one job at a time a worker."""

from typing import Any

import msgspec
import numpy as np
import pytest

from utterd.daemon import synthesis
from utterd.daemon.protocol import ProtocolError, Synthesize
from utterd.daemon.synthesis import BASE, Desk, Job, encode
from utterd.engine import messages as engine

RATE = 24_000
SAMPLES = np.array([0.0, 0.5, -1.0, 2.0], "<f4").tobytes()


class Client:
    def __init__(self) -> None:
        self.replies: list[tuple[dict[str, Any], bytes]] = []

    def reply(self, head: dict[str, Any], samples: bytes) -> None:
        self.replies.append((head, samples))

    @property
    def error(self) -> str:
        assert [head["ok"] for head, _ in self.replies][-1] is False
        return str(self.replies[-1][0]["error"]["code"])


def add(desk: Desk, voice: str = "one", text: str = "好", **fields: Any) -> Client:
    client = Client()
    command = Synthesize(text=text, **fields)
    desk.add(Job(command, command.id or "s", voice, "", client.reply, received_ns=1_000_000))
    return client


def begin(desk: Desk, voice: str = "one") -> engine.Say:
    say = desk.next_for(voice, RATE)
    assert say is not None
    return say


def finish(desk: Desk, say: engine.Say) -> None:
    desk.worker_said(engine.Pcm(say.generation, 0, SAMPLES), 3_000_000)
    desk.worker_said(engine.Finished(say.generation, 4, 1.5, 0.5), 4_000_000)


def is_empty(desk: Desk) -> bool:
    return not desk._jobs and desk.is_idle and not desk.wanted_voices()


def test_a_job_comes_back_whole() -> None:
    desk = Desk(10)
    client = add(desk, encoding="f32", rate=1.5, language="zh", id="mine")
    say = begin(desk)
    assert (say.to, say.text, say.rate, say.language) == ("daemon", "好", 1.5, "zh")
    assert say.generation > BASE
    desk.worker_said(engine.FirstAudio(say.generation, 1, 2, 3, 4, 5, 6), 2_000_000)
    skipped = [engine.Skipped(0, 1, "☃", "no sound")]
    desk.worker_said(
        engine.Segment(say.generation, 0, 0, 1, 0, 8, [], [], skipped, True), 2_500_000
    )
    desk.worker_said(engine.Pcm(say.generation, 0, SAMPLES), 3_000_000)
    desk.worker_said(engine.Pcm(say.generation, 4, SAMPLES), 3_500_000)
    assert client.replies == []
    desk.worker_said(engine.Finished(say.generation, 8, 1.5, 0.5), 4_000_000)
    ((head, samples),) = client.replies
    assert samples == SAMPLES * 2
    assert head == {
        "ok": True,
        "id": "mine",
        "sample_rate": RATE,
        "encoding": "f32",
        "channels": 1,
        "more": False,
        "samples": 8,
        "synthesis_ms": 1.5,
        "first_pcm_ms": 2.0,
        "skipped": ["☃"],
    }
    assert is_empty(desk)


def test_a_stream_comes_chunk_by_chunk() -> None:
    desk = Desk(10)
    client = add(desk, encoding="f32", stream=True)
    say = begin(desk)
    for position in (0, 4):
        desk.worker_said(engine.Pcm(say.generation, position, SAMPLES), 3_000_000)
    desk.worker_said(engine.Finished(say.generation, 8, 1.5, 0.5), 4_000_000)
    assert [head["more"] for head, _ in client.replies] == [True, True, False]
    assert [head.get("position") for head, _ in client.replies] == [0, 4, None]
    assert b"".join(samples for _, samples in client.replies) == SAMPLES * 2
    assert is_empty(desk)


def test_a_worker_has_some_jobs_at_once_and_the_first_comes_first(monkeypatch) -> None:
    monkeypatch.setattr(synthesis, "AT_ONCE", 1)
    desk = Desk(10)
    clients = [add(desk, text=text) for text in ("a", "b", "c")]
    other = add(desk, voice="two", text="d")
    assert desk.wanted_voices() == {"one", "two"}
    first = begin(desk)
    assert first.text == "a"
    assert desk.next_for("one", RATE) is None
    assert begin(desk, "two").text == "d"
    finish(desk, first)
    assert [len(client.replies) for client in clients] == [1, 0, 0]
    assert other.replies == []
    assert begin(desk).text == "b"


def test_what_cannot_be_taken_is_refused() -> None:
    desk = Desk(1)
    with pytest.raises(ProtocolError) as caught:
        add(desk, text=" \n")
    assert (caught.value.code, caught.value.field) == ("bad_request", "text")
    add(desk)
    with pytest.raises(ProtocolError) as caught:
        add(desk)
    assert caught.value.code == "queue_full"
    assert caught.value.extra["retry_after_ms"] > 0


def test_a_job_of_a_lost_worker_goes_on_where_it_stopped_and_first() -> None:
    desk = Desk(10)
    client = add(desk, text="a", encoding="f32")
    later = add(desk, text="b")
    say = begin(desk)
    skipped = [engine.Skipped(0, 1, "☃", "no sound")]
    segment = engine.Segment(say.generation, 0, 0, 1, 0, 8, [], [], skipped, False)
    desk.worker_said(engine.Pcm(say.generation, 0, SAMPLES), 3_000_000)
    desk.worker_said(segment, 3_000_000)
    desk.worker_lost("one")
    assert client.replies == []
    again = begin(desk)
    assert (again.text, again.begin, again.position, again.written) == ("a", 0, 0, 4)
    desk.worker_said(engine.Pcm(say.generation, 4, SAMPLES), 3_500_000)  # too late to be believed
    desk.worker_said(msgspec.structs.replace(segment, generation=again.generation), 3_600_000)
    desk.worker_said(engine.Pcm(again.generation, 4, SAMPLES), 3_700_000)
    desk.worker_said(engine.Finished(again.generation, 8, 1.5, 0.5), 4_000_000)
    ((head, samples),) = client.replies
    assert samples == SAMPLES * 2
    assert head["skipped"] == ["☃"]
    assert later.replies == []


def test_a_job_makes_way_for_speech_and_goes_on_from_its_clause() -> None:
    desk = Desk(10)
    client = add(desk, text="一二三四", stream=True)
    say = begin(desk)
    desk.worker_said(engine.Pcm(say.generation, 0, SAMPLES), 3_000_000)
    desk.worker_said(engine.Segment(say.generation, 0, 0, 2, 0, 4, [], [], [], False), 3_000_000)
    desk.worker_said(engine.Segment(say.generation, 1, 2, 4, 4, 4, [], [], [], True), 3_100_000)
    assert desk.make_way("one") == [engine.Abandon(say.generation)]
    assert desk.make_way("one") == []
    again = begin(desk)
    assert again.generation > say.generation
    assert (again.begin, again.position, again.written) == (2, 4, 4)
    desk.worker_said(engine.Pcm(again.generation, 4, SAMPLES), 3_700_000)
    desk.worker_said(engine.Finished(again.generation, 8, 1.5, 0.5), 4_000_000)
    assert [head.get("position") for head, _ in client.replies] == [0, 4, None]
    assert is_empty(desk)


def test_all_jobs_under_way_make_way_and_come_back_in_their_order() -> None:
    desk = Desk(10)
    for text in ("a", "b", "c"):
        add(desk, text=text)
    first, second = begin(desk), begin(desk)
    assert desk.make_way("one") == [
        engine.Abandon(first.generation), engine.Abandon(second.generation)
    ]  # fmt: skip
    assert [begin(desk).text for _ in range(3)] == ["a", "b", "c"]
    desk.worker_lost("one")
    assert [begin(desk).text for _ in range(3)] == ["a", "b", "c"]


def test_a_job_that_kills_two_workers_fails() -> None:
    desk = Desk(10)
    client = add(desk)
    for _ in range(2):
        begin(desk)
        desk.worker_lost("one")
    assert client.error == "internal"
    assert is_empty(desk)
    desk.worker_lost("one")
    assert len(client.replies) == 1


@pytest.mark.parametrize("code", ["bad_request", "internal", "unavailable"])
def test_a_failure_is_told_and_frees_the_worker(code: Any) -> None:
    desk = Desk(10)
    client = add(desk)
    say = begin(desk)
    desk.worker_said(engine.Failed(say.generation, code, "no such speaker", 0), 3_000_000)
    assert client.error == code
    assert client.replies[0][0]["error"]["message"] == "no such speaker"
    assert is_empty(desk)


def test_a_broken_voice_fails_its_jobs_the_one_under_way_too() -> None:
    desk = Desk(10)
    clients = [add(desk), add(desk)]
    other = add(desk, voice="two")
    begin(desk)
    desk.voice_broken("one", "voice.toml is missing")
    assert [client.error for client in clients] == ["unavailable"] * 2
    assert other.replies == []
    assert desk.wanted_voices() == {"two"}
    assert not desk._busy["one"]


def test_what_is_late_or_of_speech_is_not_for_the_desk() -> None:
    desk = Desk(10)
    client = add(desk)
    say = begin(desk)
    desk.worker_said(engine.Finished(7, 100, 1.0, 1.0), 3_000_000)
    desk.worker_said(
        engine.Ready("v", RATE, [], [], [], "r", 1.0, 1.0, 0.1, parallel=True), 3_000_000
    )
    finish(desk, say)
    finish(desk, say)
    assert len(client.replies) == 1


def test_the_end_refuses_what_is_left() -> None:
    desk = Desk(10)
    clients = [add(desk), add(desk), add(desk, voice="two")]
    begin(desk)
    desk.close()
    assert [client.error for client in clients] == ["unavailable"] * 3
    assert is_empty(desk)


def test_sixteen_bits_are_clipped_not_wrapped() -> None:
    assert np.frombuffer(encode(SAMPLES, "s16"), "<i2").tolist() == [0, 16384, -32767, 32767]
    assert encode(SAMPLES, "f32") == SAMPLES
    assert encode(b"", "s16") == b""


def test_what_nobody_waits_for_any_more_is_not_made() -> None:
    desk = Desk(10)
    present: set[str] = {"a", "b", "c", "d"}
    clients = {}
    for id_ in ("a", "b", "c", "d"):
        clients[id_] = Client()
        command = Synthesize(text="好", id=id_)
        desk.add(
            Job(command, id_, "one", "", clients[id_].reply, 0, lambda id_=id_: id_ in present)
        )
    begun = begin(desk)
    assert begun.utterance == "a"
    assert desk.forget_unwanted() == []
    present -= {"a", "c"}
    assert desk.forget_unwanted() == [("one", engine.Abandon(begun.generation))]
    assert desk.forget_unwanted() == []
    finish(desk, begun)  # its worker had not heard of it yet
    for _ in range(2):
        say = desk.next_for("one", RATE)
        assert say is not None
        finish(desk, say)
    assert desk.next_for("one", RATE) is None
    assert {id_ for id_, client in clients.items() if client.replies} == {"b", "d"}
    assert is_empty(desk)
