"""What is on disk is whole, bounded, private, and never in the way."""

import os
import sqlite3
import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pytest

from tests.engine.cache.contents import contents
from utterd.engine.cache import database
from utterd.engine.cache import disk as disk_module
from utterd.engine.cache.database import FILE as DATABASE
from utterd.engine.cache.database import clear
from utterd.engine.cache.secret import FILE as SECRET
from utterd.engine.cache.secret import secret
from utterd.engine.cache.stored import Stored
from utterd.engine.voices.contract import Timing


def stored(seed: int, samples: int = 2000) -> Stored:
    made = np.random.default_rng(seed).standard_normal(samples).astype(np.float32)
    return Stored(Timing((0, seed), (7,), samples), made)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def same(one: Stored | None, other: Stored) -> bool:
    return (
        one is not None
        and one.timing == other.timing
        and one.samples.dtype == np.float32
        and np.array_equal(one.samples, other.samples)
    )


def test_what_was_written_is_read_by_who_comes_later(disk):
    first = disk()
    assert first.get(key(1)) is None
    assert first.put(key(1), stored(1))
    first.flush()
    assert same(first.get(key(1)), stored(1))
    assert same(disk().get(key(1)), stored(1))


def test_a_read_that_finds_it_locked_is_a_miss_and_loses_nothing(disk, monkeypatch):
    one = disk()
    one.put(key(1), stored(1))
    one.flush()

    def locked() -> object:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(one._reading, "connection", locked)
    assert one.get(key(1)) is None
    one.flush()
    monkeypatch.undo()
    assert same(one.get(key(1)), stored(1))
    assert (one.problem, one.damaged) == ("", 0)


def test_threads_take_turns_to_read(disk):
    """As the lanes of a worker do."""
    one = disk()
    for number in range(4):
        one.put(key(number), stored(number))
    one.flush()
    found = {}
    for number in range(4):
        thread = Thread(target=lambda n=number: found.setdefault(n, one.get(key(n))))
        thread.start()
        thread.join()
    one.flush()
    assert all(same(found[number], stored(number)) for number in range(4))
    assert all(same(one.get(key(number)), stored(number)) for number in range(4))
    assert (one.problem, one.damaged) == ("", 0)


def test_one_that_could_not_be_opened_is_opened_later(disk, tmp_path, monkeypatch):
    one = disk()
    one.put(key(1), stored(1))
    one.flush()
    assert same(one.get(key(1)), stored(1))
    one.flush()
    for path in list((tmp_path / "cache").glob(f"{DATABASE}*")):
        path.rename(tmp_path / path.name)

    def locked(*_: object) -> object:
        raise sqlite3.OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(database, "_connect", locked)
        assert one.get(key(1)) is None
        one.flush()
    for path in tmp_path.glob(f"{DATABASE}*"):
        path.rename(tmp_path / "cache" / path.name)
    assert same(one.get(key(1)), stored(1))
    one.flush()
    assert same(one.get(key(1)), stored(1))


def test_the_least_used_makes_room(disk):
    one = disk(limit_bytes=4 * 8000)
    for number in range(4):
        one.put(key(number), stored(number))
    one.flush()
    assert same(one.get(key(0)), stored(0))
    one.put(key(9), stored(9))
    one.flush()
    assert one.get(key(1)) is None
    assert all(same(one.get(key(n)), stored(n)) for n in (0, 2, 3, 9))
    assert (one.bytes, one.evictions) == (4 * 8000, 1)


def test_what_is_too_old_is_gone(disk):
    old = disk(ttl_s=0.2)
    old.put(key(1), stored(1))
    old.flush()
    time.sleep(0.3)
    assert old.get(key(1)) is None
    assert disk(ttl_s=0.2).bytes == 0


def test_a_voice_that_changed_loses_its_own_entries_only(disk):
    for voice, number in (("a", 1), ("b", 2)):
        one = disk(voice)
        one.put(key(number), stored(number))
        one.flush()
    assert same(disk("a").get(key(1)), stored(1))
    changed = disk("a", identity=b"2")
    assert changed.get(key(1)) is None
    assert same(changed.get(key(2)), stored(2))


@pytest.mark.parametrize("column", ["samples", "timing"])
def test_a_damaged_entry_is_dropped_and_counted(disk, tmp_path, column):
    one = disk()
    one.put(key(1), stored(1))
    one.flush()
    with sqlite3.connect(tmp_path / "cache" / DATABASE) as other:
        row = other.execute("SELECT timing, samples FROM segment").fetchone()
        values = dict(zip(("timing", "samples"), row, strict=True))
        values[column] = bytes([values[column][0] ^ 1]) + values[column][1:]
        other.execute("UPDATE segment SET timing = :timing, samples = :samples", values)
    other.close()
    assert one.get(key(1)) is None
    one.flush()
    assert (one.damaged, one.bytes) == (1, 0)


@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_file_is_begun_anew_and_told(disk, tmp_path, cut, caplog):
    first = disk()
    for number in range(8):
        first.put(key(number), stored(number))
    first.flush()
    first.close()
    path = tmp_path / "cache" / DATABASE
    path.write_bytes(path.read_bytes()[:9000] if cut else b"\xff" * 9000)
    second = disk()
    for number in range(8):
        second.get(key(number))
        second.flush()
    assert "begun anew" in caplog.text
    assert second.damaged >= 1
    second.put(key(1), stored(1))
    second.flush()
    assert same(second.get(key(1)), stored(1))
    assert second.problem == ""


def test_a_database_that_another_put_in_its_place_is_found(disk, tmp_path):
    first, second = disk(), disk()
    first.put(key(1), stored(1))
    first.flush()
    assert same(second.get(key(1)), stored(1))
    for file in (tmp_path / "cache").glob(f"{DATABASE}*"):
        file.unlink()
    assert first.get(key(1)) is None
    first.put(key(2), stored(2))
    first.flush()
    assert same(second.get(key(2)), stored(2))


def test_a_folder_that_cannot_be_is_told_once_and_speech_goes_on(disk, tmp_path, caplog):
    (tmp_path / "cache").write_text("a file")
    one = disk()
    for number in range(3):
        one.put(key(number), stored(number))
        assert one.get(key(number)) is None
    one.flush()
    assert "can't be used" in one.problem
    assert caplog.text.count("can't be used") == 1
    (tmp_path / "cache").unlink()
    one.put(key(1), stored(1))
    one.flush()
    assert one.problem == ""
    assert same(one.get(key(1)), stored(1))


FULL = """
import resource, signal, sys
from pathlib import Path
from tests.engine.cache.test_disk import key, same, stored
from utterd.engine.cache.disk import Disk
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
disk = Disk(Path(sys.argv[1]), "tiny", b"1", 1 << 30, 1e6)
disk.put(key(1), stored(1))
disk.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
disk.put(key(2), stored(2, 100_000))
disk.flush()
print(disk.problem)
for _ in range(3):
    assert same(disk.get(key(1)), stored(1)) and disk.get(key(2)) is None
    disk.flush()
    assert disk.problem, "it is no better because one was used"
    disk.put(key(2), stored(2, 100_000))
    disk.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
disk.put(key(2), stored(2, 100_000))
disk.flush()
assert same(disk.get(key(2)), stored(2, 100_000)) and disk.problem == "", disk.problem
disk.close()
"""


def test_a_full_disk_costs_what_does_not_fit(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "cache")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "can't be used" in done.stdout
    assert done.stderr.count("can't be used") == 1


BUSY = """
import sys
from pathlib import Path
from tests.engine.cache.test_disk import key, stored
from utterd.engine.cache.disk import Disk
disk = Disk(Path(sys.argv[1]), sys.argv[2], b"1", 1 << 20, 1e6)
begin = int(sys.argv[3])
print("ready", flush=True)
for number in range(begin, begin + int(sys.argv[4])):
    disk.put(key(number), stored(number))
    disk.flush()
    print(number, flush=True)
assert not disk.problem, disk.problem
disk.close()
"""


def busy(folder, voice: str, begin: int, count: int) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(folder), voice, str(begin), str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_two_workers_write_at_once(disk, tmp_path):
    with busy(tmp_path / "cache", "a", 0, 40) as one, busy(tmp_path / "cache", "b", 100, 40) as two:
        assert one.communicate()[0].split() == [str(n) for n in range(40)]
        assert (two.communicate()[0].count("\n"), one.returncode, two.returncode) == (40, 0, 0)
    reader = disk()
    for number in (*range(40), *range(100, 140)):
        assert same(reader.get(key(number)), stored(number))


def test_a_kill_at_any_moment_loses_nothing_that_was_written(disk, tmp_path):
    for attempt in range(5):
        with busy(tmp_path / "cache", "tiny", 100 * attempt, 100) as process:
            for number in range(2 * attempt + 1):
                assert process.stdout.readline() == f"{100 * attempt + number}\n"
            process.kill()
    reader = disk()
    for attempt in range(5):
        written = range(100 * attempt, 100 * attempt + 2 * attempt + 1)
        assert all(same(reader.get(key(n)), stored(n)) for n in written)
    rest = [reader.get(key(n)) for n in range(500)]
    assert all(same(one, stored(n)) for n, one in enumerate(rest) if one is not None)
    assert (reader.damaged, reader.problem) == (0, "")


def test_nobody_else_may_look(disk, tmp_path):
    before = os.umask(0)
    try:
        one = disk()
        secret(tmp_path / "cache")
        one.put(key(1), stored(1))
        one.flush()
    finally:
        os.umask(before)
    folder = tmp_path / "cache"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {p.name: p.stat().st_mode & 0o077 for p in folder.iterdir()} == dict.fromkeys(
        (SECRET, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"), 0
    )


def test_the_secret_stays_and_one_that_was_cut_is_made_anew(tmp_path):
    first = secret(tmp_path / "cache")
    assert len(first) == 32
    assert secret(tmp_path / "cache") == first
    (tmp_path / "cache" / SECRET).write_bytes(first[:7])
    other = secret(tmp_path / "cache")
    assert len(other) == 32
    assert other != first
    assert sorted(p.name for p in (tmp_path / "cache").iterdir()) == [SECRET]


def test_clearing_overwrites(disk, tmp_path):
    folder = tmp_path / "cache"
    assert contents(folder) == {}
    assert clear(folder) == 0
    for voice, number in (("a", 1), ("b", 2)):
        one = disk(voice)
        one.put(key(number), stored(number))
        one.flush()
    needle = stored(2).samples.tobytes()[:64]
    assert contents(folder) == {"a": (1, 8000), "b": (1, 8000)}
    assert any(needle in p.read_bytes() for p in folder.iterdir())
    assert clear(folder, "a") == 1
    assert contents(folder) == {"b": (1, 8000)}
    assert clear(folder) == 1
    assert not any(needle in p.read_bytes() for p in folder.iterdir())
    assert disk("b").get(key(2)) is None


def test_a_clearing_worker_catches_what_waits(disk, tmp_path):
    one = disk()
    for number in range(5):
        one.put(key(number), stored(number))
    one.clear()
    assert contents(tmp_path / "cache") == {}
    assert one.bytes == 0


def test_a_clearing_worker_overwrites(disk, tmp_path):
    one = disk()
    needle = stored(1).samples.tobytes()[:64]
    one.put(key(1), stored(1))
    one.flush()
    assert any(needle in p.read_bytes() for p in (tmp_path / "cache").iterdir())
    one.clear()
    assert not any(needle in p.read_bytes() for p in (tmp_path / "cache").iterdir())


def test_more_than_can_wait_is_left_out(disk, monkeypatch):
    one = disk()
    monkeypatch.setattr(one, "_queue", disk_module.queue.Queue(1))
    assert one.put(key(1), stored(1))
    assert not one.put(key(2), stored(2))
    monkeypatch.undo()


def test_the_daemon_can_clear_without_loading_a_runtime():
    code = "import sys, utterd.daemon.commands; print('onnxruntime' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
