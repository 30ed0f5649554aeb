"""A worker with a cache says and reports what one without it does."""

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.engine.running import Running
from utterd.engine.cache.readings import RememberingReader
from utterd.engine.messages import Alive, Finished, Forget, Segment

TEXT = "好的，打开<mark name='m'/>空调。然后导航到机场。"
SSML = f"<speak>{TEXT}</speak>"


@pytest.fixture
def options(tmp_path: Path) -> dict[str, object]:
    return {
        "warm": False,
        "cache_memory_bytes": 4 << 20,
        "cache_disk_bytes": 8 << 20,
        "cache_dir": str(tmp_path / "cache"),
    }


def told(running: Running, generation: int) -> list[Segment]:
    return [msgspec.structs.replace(s, generation=0) for s in running.of(Segment, generation)]


def counts(running: Running):
    """As of now: of the second report from here on."""
    running.until(Alive)
    alive = running.until(Alive)
    assert isinstance(alive, Alive)
    return alive.cache


def test_samples_and_segments_are_those_of_a_worker_without_it(start, package, options):
    plain, cached = start(package.folder, warm=False), start(package.folder, **options)
    plain.ready()
    cached.ready()
    plain.say(1, SSML, format="ssml")
    expected = plain.played(1)
    for generation in (1, 2, 3):
        cached.say(generation, SSML, format="ssml")
        np.testing.assert_array_equal(cached.played(generation), expected)
        assert told(cached, generation) == told(plain, 1)
    assert any(s.marks for s in told(cached, 3))
    assert cached.of(Finished, 3)[0].synthesis_ms == 0.0
    assert plain.until(Alive).cache is None


def test_an_opening_is_known_although_the_rest_is_new(start, package, options):
    running = start(package.folder, **options)
    running.ready()
    running.say(1, "好的没有问题，马上为您打开空调。")
    running.played(1)
    segments = len(told(running, 1))
    running.say(2, "好的没有问题，马上为您导航回家。")
    running.played(2)
    found = counts(running)
    assert segments == 2
    assert (found.hits, found.misses) == (1, 3)


def test_a_restart_finds_it_and_the_disk_does_not_tell_the_text(start, package, options, tmp_path):
    first = start(package.folder, **options)
    first.ready()
    for generation in (1, 2):
        first.say(generation, "秘密的话。")
        samples = first.played(generation)
    assert counts(first).disk_bytes > 0
    first.close()
    again = start(package.folder, **options)
    again.ready()
    assert counts(again).disk_bytes > 0  # it is open: who asks before would not find it
    again.say(1, "秘密的话。")
    np.testing.assert_array_equal(again.played(1), samples)
    assert counts(again).disk_hits == 1
    kept = b"".join(p.read_bytes() for p in (tmp_path / "cache").iterdir())
    assert "秘密".encode() not in kept
    assert len(kept) > samples.nbytes


def test_several_threads_find_what_is_on_disk(start, package, options):
    options |= {"threads": 3}
    running = start(package.folder, **options)
    running.ready()
    for generation in (1, 2):
        running.say(generation, "前方右转。")
        running.played(generation)
    assert counts(running).disk_bytes > 0
    running.close()
    again = start(package.folder, **(options | {"cache_memory_bytes": 0}))
    again.ready()
    generations = range(1 << 62, (1 << 62) + 4)
    for number in generations:
        new = [f"第{number % 4}{k}次。" for k in range(10, 40)]
        again.say(number, "前方右转。".join(["", *new]), to="daemon")
    for number in generations:
        assert isinstance(again.end_of(number), Finished)
    found = counts(again)
    assert (found.disk_hits, found.misses) == (120, 120)
    assert (found.damaged, found.problem) == (0, "")


def test_a_lexicon_that_changes_is_heard_at_once(start, package, options, tmp_path):
    lexicon = tmp_path / "lexicon"
    lexicon.write_text("ES8 = 好\n", "utf-8")
    running = start(package.folder, lexicon=str(lexicon), **options)
    running.ready()
    lengths = []
    for generation, reading in enumerate(("好", "好", "好的好的"), 1):
        lexicon.write_text(f"ES8 = {reading}\n", "utf-8")
        running.say(generation, "ES8。")
        lengths.append(len(running.played(generation)))
    assert lengths[0] == lengths[1] < lengths[2]


def test_forgetting(start, package, options):
    running = start(package.folder, **options)
    running.ready()
    for generation in (1, 2):
        running.say(generation, "好的。")
        running.played(generation)
    running.process.send(Forget())
    running.say(3, "好的。")
    running.played(3)
    assert running.of(Finished, 3)[0].synthesis_ms > 0
    found = counts(running)
    assert (found.hits, found.misses, found.entries, found.disk_bytes) == (1, 2, 1, 0)


def test_a_folder_that_cannot_be_leaves_the_memory_and_is_told(start, package, options, tmp_path):
    (tmp_path / "cache").write_text("a file")
    running = start(package.folder, **options)
    running.ready()
    for generation in (1, 2):
        running.say(generation, "好的。")
        running.played(generation)
    found = counts(running)
    assert found.hits == 1
    assert str(tmp_path / "cache") in found.problem


def test_no_cache_holds_nothing(start, package, options):
    running = start(package.folder, **(options | {"cache_memory_bytes": 0, "cache_disk_bytes": 0}))
    running.ready()
    for generation in (1, 2):
        running.say(generation, "好的。")
        running.played(generation)
        assert running.of(Finished, generation)[0].synthesis_ms > 0
    assert not Path(str(options["cache_dir"])).exists()


def test_the_reader_remembers_what_it_read(reader):
    remembering = RememberingReader()
    for _ in range(2):
        assert remembering.analyse("导航到ES8旁边。", offset=3) == reader.analyse(
            "导航到ES8旁边。", offset=3
        )
    assert remembering.analyse("好。") is remembering.analyse("好。")
    assert remembering.analyse("好。", offset=1) != remembering.analyse("好。")
    kept = remembering.analyse("好。")
    remembering.forget()
    assert remembering.analyse("好。") is not kept
    assert dataclasses.asdict(remembering.analyse("好。")) == dataclasses.asdict(kept)


def test_a_lexicon_that_changes_while_a_text_is_read_is_not_missed(tmp_path, monkeypatch):
    lexicon = tmp_path / "lexicon"
    lexicon.write_text("ES8 = 好\n", "utf-8")
    remembering = RememberingReader(lexicon)
    before = remembering.analyse("ES8。")
    refresh, looked = remembering.lexicon.refresh, []

    def look() -> bool:
        changed = refresh()
        if not looked:
            lexicon.write_text("ES8 = 好的好的\n", "utf-8")
        looked.append(changed)
        return changed

    monkeypatch.setattr(remembering.lexicon, "refresh", look)
    remembering.analyse("别的。")
    assert remembering.analyse("ES8。") != before
