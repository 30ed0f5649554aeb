"""Memory is bounded, and only what was said twice goes to disk."""

import time

from tests.engine.cache.contents import contents
from tests.engine.cache.test_disk import key, same, stored
from utterd.engine.cache import store

ENTRY = 2000 * 4 + 1024


def test_the_least_used_makes_room(cache):
    one = cache(memory_bytes=5 * ENTRY)
    for number in range(5):
        one.put(key(number), stored(number))
    assert same(one.get(key(0)), stored(0))
    one.put(key(9), stored(9))
    assert one.get(key(1)) is None
    assert same(one.get(key(0)), stored(0))
    counts = one.counts()
    assert (counts.entries, counts.bytes, counts.evictions) == (5, 5 * ENTRY, 1)
    assert (counts.hits, counts.misses) == (2, 1)


def test_what_is_put_again_counts_once(cache):
    one = cache()
    for _ in range(3):
        one.put(key(1), stored(1))
    assert (one.counts().entries, one.counts().bytes) == (1, ENTRY)


def test_one_long_segment_does_not_drive_out_the_rest(cache):
    one = cache(memory_bytes=5 * ENTRY)
    one.put(key(1), stored(1))
    one.put(key(2), stored(2, 5000))
    assert one.get(key(2)) is None
    assert same(one.get(key(1)), stored(1))


def test_what_is_too_old_is_forgotten(cache, monkeypatch):
    now_s = time.monotonic()
    monkeypatch.setattr(store.time, "monotonic", lambda: now_s)
    one = cache(ttl_s=60.0)
    one.put(key(1), stored(1))
    now_s += 59.0
    assert one.get(key(1)) is not None
    now_s += 61.0
    assert one.get(key(1)) is None
    assert one.counts().bytes == 0


def test_said_once_is_not_on_disk_and_said_twice_is(cache, tmp_path):
    one = cache(on_disk=True)
    one.put(key(1), stored(1))
    one.put(key(2), stored(2))
    one._disk.flush()
    assert contents(tmp_path / "cache") == {}
    assert one.get(key(1)) is not None
    assert one.get(key(1)) is not None
    one._disk.flush()
    assert contents(tmp_path / "cache") == {"tiny": (1, 8000)}


def test_said_twice_counts_although_it_left_memory_in_between(cache, tmp_path):
    one = cache(memory_bytes=0, on_disk=True)
    one.put(key(1), stored(1))
    assert one.get(key(1)) is None
    one.put(key(1), stored(1))
    one._disk.flush()
    assert contents(tmp_path / "cache") == {"tiny": (1, 8000)}
    assert same(one.get(key(1)), stored(1))
    assert one.counts().disk_hits == 1


def test_a_restart_finds_what_was_said_twice(cache):
    one = cache(on_disk=True)
    one.put(key(1), stored(1))
    one.get(key(1))
    one._disk.flush()
    again = cache(on_disk=True)
    assert same(again.get(key(1)), stored(1))
    assert same(again.get(key(1)), stored(1))
    counts = again.counts()
    assert (counts.hits, counts.disk_hits, counts.disk_bytes) == (2, 1, 8000)


def test_forgetting_reaches_memory_and_disk(cache, tmp_path):
    one = cache(on_disk=True)
    one.put(key(1), stored(1))
    one.get(key(1))
    one.forget()
    one._disk.flush()
    assert one.get(key(1)) is None
    assert contents(tmp_path / "cache") == {}
    one.put(key(1), stored(1))
    one._disk.flush()
    assert contents(tmp_path / "cache") == {}  # it has been said once


def test_what_is_held_cannot_be_written_to(cache):
    one = cache()
    one.put(key(1), stored(1))
    assert not one.get(key(1)).samples.flags.writeable
