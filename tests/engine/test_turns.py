"""Several clients' samples are made in turn, each as if it were alone."""

import numpy as np

from tests.engine.training.conftest import networks, package
from utterd.engine.messages import Abandon, Abandoned, Finished, Pcm, Say
from utterd.engine.turns import Turns

__all__ = ["networks", "package"]

BASE = 1 << 62
TEXTS = (
    "好的没有问题，马上为您打开客厅的空调，请稍等一下。",
    "前方路口右转。",
    "今天天气很好，我们一起去公园散步吧。",
)


def test_who_has_least_goes_first():
    turns, log = Turns(), []

    def steps(name, size):
        for number in range(1, 4):
            log.append(name)
            yield number * size

    turns.add(1, steps("a", 10))
    turns.step()
    turns.add(2, steps("b", 4))
    turns.add(1, steps("A", 10))
    while turns:
        turns.step()
    assert "".join(log) == "abbba" + "aAAA"


def pcm(running, generation):
    data = b"".join(m.data for m in running.of(Pcm, generation))
    return np.frombuffer(data, "<f4")


def test_each_gets_what_it_would_get_alone_and_none_waits_for_another(start, package):
    running = start(package.folder, warm=False)
    running.ready()
    for number, text in enumerate(TEXTS):
        running.say(BASE + number, text, to="daemon")
        running.end_of(BASE + number)
    alone = [pcm(running, BASE + number) for number in range(len(TEXTS))]
    # In one go: the worker finds all of them in its queue, or while it makes the first chunk.
    for number, text in enumerate(TEXTS):
        running.process.send(
            Say(generation=BASE + 10 + number, utterance="u", text=text, to="daemon")
        )
    for number in range(len(TEXTS)):
        assert isinstance(running.end_of(BASE + 10 + number), Finished)
        np.testing.assert_array_equal(pcm(running, BASE + 10 + number), alone[number])
    order = [m.generation for m in running.said if isinstance(m, Pcm) and m.generation >= BASE + 10]
    ends = [order[::-1].index(BASE + 10 + n) for n in range(len(TEXTS))]
    assert ends[0] < max(ends), "the longest, which came first, ends last or nearly so"


def test_one_that_is_abandoned_leaves_the_others(start, package):
    running = start(package.folder, warm=False)
    running.ready()
    long = TEXTS[0] * 40
    running.say(BASE, long, to="daemon")
    running.say(BASE + 1, TEXTS[2], to="daemon")
    running.until(Pcm, generation=BASE)
    running.process.send(Abandon(BASE))
    assert isinstance(running.end_of(BASE), Abandoned)
    assert isinstance(running.end_of(BASE + 1), Finished)
    assert len(pcm(running, BASE + 1)) > 0


def test_speech_does_not_wait_for_samples(start, package):
    running = start(package.folder, warm=False)
    running.ready()
    running.say(BASE, TEXTS[0] * 40, to="daemon")
    running.until(Pcm, generation=BASE)
    running.say(1, TEXTS[1])
    assert len(running.played(1)) > 0
    assert not running.of(Finished, BASE)
    assert isinstance(running.end_of(BASE), Finished)
