"""Several clients' samples are made in turn and side by side, each as if it were alone."""

import os
import random
import resource
import select
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tests.engine.running import PATIENCE_S, Running
from tests.engine.training.conftest import networks, package
from utterd.engine.client import Nursery
from utterd.engine.messages import (
    Abandon,
    Abandoned,
    Alive,
    Failed,
    Finished,
    FirstAudio,
    Forget,
    Pcm,
    Say,
    Segment,
    Shutdown,
)

__all__ = ["networks", "package"]

BASE = 1 << 62
TEXTS = (
    "好的没有问题，马上为您打开客厅的空调，请稍等一下。",
    "前方路口右转。",
    "今天天气很好，我们一起去公园散步吧。",
    "🙂",
    "Turn left。然后直行三公里，到了请叫我！",
    "一。二。三。",
    "",
)
EMPTY = np.zeros(0, np.float32)
LONG = TEXTS[0] * 40


@pytest.fixture(scope="module", params=[1, 2, 4])
def lanes(request):
    return request.param


@pytest.fixture(scope="module")
def running(lanes, package):
    """One worker for all tests that leave it alive."""
    worker = Running(package.folder, threads=lanes, warm=False, cache_memory_bytes=1 << 18)
    worker.ready()
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def alone(package):
    """What a worker with one thread and nothing else to do makes of a text."""
    worker = Running(package.folder, warm=False)
    worker.ready()
    known = {}

    def samples(*pieces):
        if pieces not in known:
            generation = BASE + len(known)
            say(worker, generation, pieces)
            assert isinstance(worker.end_of(generation), Finished)
            known[pieces] = pcm(worker, generation)
        return known[pieces]

    yield samples
    worker.close()


def say(worker, generation, pieces, **options):
    """Say a text that comes in pieces."""
    options = {"to": "daemon"} | options
    for number, text in enumerate(pieces, start=1):
        offset = sum(len(before) for before in pieces[: number - 1])
        worker.say(generation, text, offset=offset, final=number == len(pieces), **options)


def pcm(worker, generation):
    """The samples for the daemon, which follow each other without a gap."""
    parts = [np.zeros(0, "<f4")]
    for message in worker.of(Pcm, generation):
        assert message.position == sum(map(len, parts))
        parts.append(np.frombuffer(message.data, "<f4"))
    return np.concatenate(parts)


def fresh(worker):
    """A number for the daemon's next generation."""
    return max([BASE, *(getattr(m, "generation", 0) for m in worker.said)]) + 1


def played_to_the_end(worker, generations):
    """What the ring holds until all generations are at their end."""
    heard, end = {}, time.monotonic() + PATIENCE_S
    while True:
        ended = {m.generation for m in worker.said if isinstance(m, Finished | Abandoned | Failed)}
        for number, samples in worker.heard().items():
            heard.setdefault(number, []).append(samples)
        if generations <= ended:
            return heard
        assert time.monotonic() < end, generations - ended
        worker.take(0.05)


def threads(worker):
    return len(list(Path(f"/proc/{worker.process.pid}/task").iterdir()))


def in_order(worker, generation):
    """What is told of a generation, checked: its kinds in order, one end, behind everything."""
    told = [m for m in worker.said if getattr(m, "generation", None) == generation]
    ends = [m for m in told if isinstance(m, Finished | Abandoned | Failed)]
    assert ends == told[-1:]
    segments = [m for m in told if isinstance(m, Segment)]
    assert [s.index for s in segments] == list(range(len(segments)))
    position = 0
    for segment in segments:
        assert segment.position == position
        position += segment.samples
    assert sum(isinstance(m, FirstAudio) for m in told) <= 1
    if isinstance(ends[0], Finished):
        assert [s.last for s in segments] == [False] * (len(segments) - 1) + [True]
        assert ends[0].samples == position
        assert ends[0].synthesis_ms >= 0
        assert ends[0].overhead_ms > 0
    return ends[0]


@pytest.mark.parametrize("seed", range(6))
def test_any_mix_gives_each_what_it_would_get_alone(running, alone, seed):
    """Texts in one piece or several, for the daemon and the ring, some of them abandoned or bad."""
    rng = random.Random(seed)
    asked, speech, dropped, bad = {}, {}, set(), set()
    generation, spoken = fresh(running), running.ring.fence + 100 * (seed + 1)
    for _ in range(14):
        pieces = tuple(rng.choice(TEXTS) for _ in range(rng.choice((1, 1, 2, 3))))
        match rng.choice("dddddrabf"):
            case "r":
                say(running, spoken, pieces, to="ring")
                speech[spoken] = pieces
                spoken += 1
                continue
            case "b":
                say(running, generation, pieces, speaker="nobody")
                bad.add(generation)
            case "f":
                running.process.send(Forget())
                continue
            case "a":
                say(running, generation, (LONG,))
                running.process.send(Abandon(generation))
                dropped.add(generation)
            case _:
                say(running, generation, pieces)
                asked[generation] = pieces
        generation += 1
        if rng.random() < 0.3:
            running.take(0.01)
    heard = played_to_the_end(running, asked.keys() | speech.keys() | dropped | bad)
    assert all(isinstance(in_order(running, number), Abandoned) for number in dropped)
    assert all(isinstance(in_order(running, number), Failed) for number in bad)
    for number, pieces in asked.items():
        assert isinstance(in_order(running, number), Finished)
        np.testing.assert_array_equal(pcm(running, number), alone(*pieces))
    for number, pieces in speech.items():
        assert isinstance(in_order(running, number), Finished)
        np.testing.assert_array_equal(np.concatenate(heard.get(number, [EMPTY])), alone(*pieces))


def test_none_waits_for_all_of_another(running, lanes, alone):
    first = fresh(running)
    texts = (TEXTS[0] * 3, TEXTS[2], TEXTS[1], TEXTS[2])
    # In one go: the worker finds all of them in its queue, or while it makes the first chunk.
    for number, text in enumerate(texts):
        running.process.send(Say(generation=first + number, utterance="u", text=text, to="daemon"))
    for number, text in enumerate(texts):
        running.end_of(first + number)
        np.testing.assert_array_equal(pcm(running, first + number), alone(text))
    told = [m for m in running.said if isinstance(m, Pcm) and m.generation >= first]
    begins = [next(m for m in told if m.generation == first + n) for n in range(len(texts))]
    longest = 0
    for message in told:
        if message.generation == first:
            longest = message.position
        elif message in begins:
            assert longest < 24_000 + 64 * 300, "a second, and the chunk that was being made"
    # Of several threads a later one's chunk may be done first.
    assert lanes > 1 or begins[0] is told[0]
    assert sum(len(m.data) // 4 for m in told if m.generation == first) > 3 * 24_000


def test_one_that_is_abandoned_leaves_the_others(running):
    first = fresh(running)
    say(running, first, (LONG,))
    say(running, first + 1, (LONG,))
    say(running, first + 2, (TEXTS[2],))
    running.until(Pcm, generation=first)
    running.process.send(Abandon(first))
    running.process.send(Abandon(first + 1))
    assert isinstance(running.end_of(first), Abandoned)
    assert isinstance(running.end_of(first + 1), Abandoned)
    assert isinstance(running.end_of(first + 2), Finished)
    assert len(pcm(running, first + 2)) > 0


def test_speech_does_not_wait_for_samples(running):
    first, spoken = fresh(running), running.ring.fence + 1
    for number in range(5):
        say(running, first + number, (LONG + "。" * number,))
    for number in range(5):
        while not running.of(Pcm, first + number):
            running.take(1.0)
    running.say(spoken, TEXTS[1])
    assert len(running.played(spoken)) > 0
    began = next(i for i, m in enumerate(running.said) if getattr(m, "generation", None) == spoken)
    ended = running.said.index(running.end_of(spoken))
    assert not [m for m in running.said[began:ended] if isinstance(m, Pcm)], (
        "nothing is made beside speech"
    )
    for number in range(5):
        assert not running.of(Finished, first + number)
        running.process.send(Abandon(first + number))
    for number in range(5):
        running.end_of(first + number)


@pytest.mark.parametrize("text", [LONG, f'<speak>{TEXTS[0]}<break time="10s"/>{TEXTS[1]}</speak>'])
def test_samples_do_not_wait_for_the_speaker(start, package, lanes, alone, text):
    """A text longer than the ring is under way; others get theirs while it waits to be heard."""
    worker = start(package.folder, capacity_bytes=1 << 18, threads=lanes, warm=False)
    worker.ready()
    worker.say(1, text, format="ssml" if text.startswith("<") else "plain", rate=0.5)
    worker.until(FirstAudio, generation=1)
    for number in range(3):
        say(worker, BASE + number, TEXTS[:2])
    for number in range(3):
        assert isinstance(worker.end_of(BASE + number), Finished)
        np.testing.assert_array_equal(pcm(worker, BASE + number), alone(*TEXTS[:2]))
    assert not worker.of(Finished, 1)
    assert len(worker.played(1)) == worker.end_of(1).samples


def test_what_interrupts_does_not_wait_for_room(start, package):
    """The first samples are made while the speaker still fades what was interrupted."""
    worker = start(package.folder, warm=False)
    worker.ready()
    worker.say(1, LONG * 2)
    while worker.ring.free > worker.ring.capacity // 7:
        worker.take(0.01)
    say(worker, BASE, (LONG,))
    worker.until(Pcm, generation=BASE)
    worker.ring.revoke(1)
    worker.say(2, TEXTS[1])
    worker.until(FirstAudio, generation=2)
    assert isinstance(worker.end_of(1), Abandoned)


def test_a_text_is_abandoned_between_its_pieces_while_samples_are_made(start, package):
    worker = start(package.folder, warm=False)
    worker.ready()
    worker.say(1, TEXTS[1], final=False)
    worker.until(FirstAudio, generation=1)
    for number in range(3):
        say(worker, BASE + number, (LONG * 3,))
        worker.until(Pcm, generation=BASE + number)
    worker.ring.revoke(1)
    assert isinstance(worker.end_of(1), Abandoned)
    assert not any(worker.of(Finished, BASE + number) for number in range(3))


def test_nothing_of_a_text_in_which_all_was_forgotten_is_kept(start, package):
    worker = start(package.folder, capacity_bytes=1 << 18, warm=False, cache_memory_bytes=1 << 24)
    worker.ready()
    worker.say(1, LONG)
    worker.until(FirstAudio, generation=1)
    worker.process.send(Forget())
    worker.played(1)
    assert entries(worker) == 0
    worker.say(2, TEXTS[1])
    worker.played(2)
    assert entries(worker) == 1


def entries(worker):
    """What its cache holds; what was on its way when this was asked is not believed."""
    worker.until(Alive)
    return worker.until(Alive).cache.entries


def test_a_second_client_brings_a_second_thread_and_one_alone_does_not(start, package, lanes):
    worker = start(package.folder, threads=lanes, warm=False)
    worker.ready()
    before = threads(worker)
    for number in range(3):
        say(worker, BASE + number, (TEXTS[2],))
        worker.end_of(BASE + number)
    worker.say(1, TEXTS[1])
    worker.end_of(1)
    assert threads(worker) == before
    for number in range(10, 20):
        say(worker, BASE + number, (LONG,))
    for number in range(10, 20):
        while not worker.of(Pcm, BASE + number):
            worker.take(1.0)
    assert threads(worker) == before + lanes - 1


def test_a_voice_that_takes_all_cores_by_itself_gets_one_thread(start, joe_dir):
    worker = start(joe_dir, threads=2, warm=False)
    worker.ready()
    before = threads(worker)
    for number in range(3):
        say(worker, BASE + number, ("Hello there.",))
    for number in range(3):
        assert isinstance(worker.end_of(BASE + number), Finished)
    assert threads(worker) == before


@pytest.mark.parametrize("how", ["closed", "shutdown", "sigterm"])
def test_it_ends_at_once_with_all_its_threads(start, package, how):
    worker = start(package.folder, threads=4, warm=False)
    worker.ready()
    for number in range(8):
        say(worker, BASE + number, (LONG,))
    for number in range(8):
        while not worker.of(Pcm, BASE + number):
            worker.take(1.0)
    if how == "shutdown":
        worker.process.send(Shutdown())
        worker.until_gone()
    elif how == "sigterm":
        os.kill(worker.process.pid, signal.SIGTERM)
        worker.until_gone()
    assert worker.close() == (-signal.SIGTERM if how == "sigterm" else 0)


def test_a_thread_that_cannot_begin_is_told_and_done_without(
    start, package, alone, tmp_path, capfd
):
    folder = shutil.copytree(package.folder, tmp_path / "spoilt")
    worker = start(folder, threads=4)
    worker.ready()
    before = threads(worker)
    # In its place, so that another thread reads it.
    (folder / "decode.onnx").write_bytes(b"no graph")
    for number in range(2):
        say(worker, BASE + number, (LONG,))
    for number in range(2):
        assert isinstance(worker.end_of(BASE + number), Finished)
        np.testing.assert_array_equal(pcm(worker, BASE + number), alone(LONG))
    assert threads(worker) == before
    for number in range(2, 8):
        say(worker, BASE + number, (TEXTS[2],))
    for number in range(2, 8):
        assert isinstance(worker.end_of(BASE + number), Finished)
    told = [line for line in capfd.readouterr().err.splitlines() if str(folder) in line]
    assert len(told) == 1
    assert "decode.onnx failed" in told[0]


@pytest.fixture
def large_stacks():
    """Threads of processes that begin now take 64 MB of addresses each."""
    before = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_STACK, before)


@pytest.mark.usefixtures("large_stacks")
def test_a_system_without_threads_leaves_the_one_there_is(start, package, alone, capfd):
    worker = start(package.folder, threads=4, warm=False)
    worker.ready()
    before, pid = threads(worker), worker.process.pid
    say(worker, BASE, (LONG,))
    worker.until(Pcm, generation=BASE)
    # Room for samples, but for no further stack.
    status = Path(f"/proc/{pid}/status").read_text()
    has = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmSize"))
    resource.prlimit(pid, resource.RLIMIT_AS, (has * 1024 + (32 << 20), resource.RLIM_INFINITY))
    say(worker, BASE + 1, (LONG,))
    worker.until(Pcm, generation=BASE + 1)
    for number in range(2):
        assert isinstance(worker.end_of(BASE + number), Finished)
        np.testing.assert_array_equal(pcm(worker, BASE + number), alone(LONG))
    assert threads(worker) == before
    assert "no further thread" in capfd.readouterr().err


def test_one_that_was_forked_has_its_threads_too(package, alone):
    nursery = Nursery()
    worker = None
    try:
        assert select.select([nursery], [], [], PATIENCE_S)[0]
        nursery.receive()
        worker = Running(package.folder, nursery=nursery, threads=4, warm=False)
        worker.ready()
        for number in range(8):
            say(worker, BASE + number, (TEXTS[number % 3],))
        for number in range(8):
            assert isinstance(worker.end_of(BASE + number), Finished)
            np.testing.assert_array_equal(pcm(worker, BASE + number), alone(TEXTS[number % 3]))
        assert len(list(Path(f"/proc/{nursery.pid}/task").iterdir())) == 1
        assert worker.close() == 0
    finally:
        if worker is not None:
            worker.close()
        nursery.close(5.0)


def test_the_network_s_time_is_each_one_s_own(running):
    first, began = fresh(running), time.monotonic()
    for number in range(4):
        say(running, first + number, (TEXTS[0] * 3,))
    ends = [running.end_of(first + number) for number in range(4)]
    elapsed = 1000 * (time.monotonic() - began)
    for end in ends:
        assert 0 < end.synthesis_ms < elapsed
        assert 0 < end.overhead_ms < elapsed
        assert end.synthesis_ms + end.overhead_ms < elapsed
