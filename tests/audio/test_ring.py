"""The shared ring: what goes in comes out, whoever dies and whatever is cancelled."""

import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utterd.audio.reader import Reader, Record
from utterd.audio.ring import (
    HEADER_BYTES,
    RECORD_FRAMES,
    RECORD_HEADER_BYTES,
    Ring,
    RingError,
    Writer,
)

SMALL = 4 * (RECORD_HEADER_BYTES + 4 * RECORD_FRAMES)


@pytest.fixture
def wake() -> Iterator[int]:
    fd = os.eventfd(0, os.EFD_NONBLOCK)
    yield fd
    os.close(fd)


@pytest.fixture
def ring() -> Iterator[Ring]:
    ring = Ring.create()
    yield ring
    ring.close()


def ramp(start: int, count: int) -> np.ndarray:
    return np.arange(start, start + count, dtype=np.float32)


def drain(reader: Reader) -> list[Record]:
    return list(iter(reader.read, None))


def test_samples_come_out_as_they_went_in(ring: Ring, wake: int) -> None:
    writer, reader = Writer(ring, wake), Reader(ring)
    assert writer.write(7, 0, ramp(0, 5000), 24000)
    assert writer.write(7, 5000, ramp(5000, 1), 24000, last=True)
    records = drain(reader)
    assert [(r.position, len(r.samples), r.first, r.last) for r in records] == [
        (0, 2048, True, False),
        (2048, 2048, False, False),
        (4096, 904, False, False),
        (5000, 1, False, True),
    ]
    assert {(r.generation, r.sample_rate) for r in records} == {(7, 24000)}
    np.testing.assert_array_equal(np.concatenate([r.samples for r in records]), ramp(0, 5001))
    assert os.eventfd_read(wake) == 4


def test_end_without_samples(ring: Ring, wake: int) -> None:
    writer, reader = Writer(ring, wake), Reader(ring)
    writer.write(1, 480, ramp(0, 0), 24000, last=True)
    (record,) = drain(reader)
    assert (record.position, len(record.samples), record.last) == (480, 0, True)
    assert writer.write(1, 0, ramp(0, 0), 24000)
    assert drain(reader) == []


def test_write_waits_for_room_and_goes_on(wake: int) -> None:
    ring = Ring.create(SMALL)
    writer, reader = Writer(ring, wake), Reader(ring)
    thread = threading.Thread(target=writer.write, args=(1, 0, ramp(0, 60_000), 24000))
    thread.start()
    heard: list[np.ndarray] = []
    while sum(map(len, heard)) < 60_000:
        if record := reader.read():
            heard.append(record.samples)
            ring.advance(record.end, record.end)
    thread.join()
    np.testing.assert_array_equal(np.concatenate(heard), ramp(0, 60_000))
    ring.close()


@pytest.mark.parametrize("cancel", ["fence", "revoke"])
def test_cancel_ends_a_waiting_write(wake: int, cancel: str) -> None:
    ring = Ring.create(SMALL)
    writer = Writer(ring, wake)
    results: list[bool] = []
    thread = threading.Thread(
        target=lambda: results.append(writer.write(3, 0, ramp(0, 60_000), 24000))
    )
    thread.start()
    while ring.free > SMALL // 2:
        pass
    assert thread.is_alive()
    if cancel == "fence":
        ring.fence = 4
    else:
        ring.revoke(3)
    thread.join(10)
    assert results == [False]
    ring.close()


def test_revoking_spares_the_neighbours(ring: Ring) -> None:
    ring.revoke(5)
    assert [ring.is_dropped(g) for g in (4, 5, 6, 5 + 256)] == [False, True, False, False]
    ring.fence = 5
    assert [ring.is_dropped(g) for g in (4, 5, 6)] == [True, True, False]
    with pytest.raises(ValueError, match="can't go back"):
        ring.fence = 4


def test_a_new_reader_begins_where_sound_stopped(ring: Ring, wake: int) -> None:
    writer = Writer(ring, wake)
    writer.write(1, 0, ramp(0, 5000), 24000, last=True)
    first, second, third = drain(Reader(ring))
    ring.advance(first.end, second.begin + RECORD_HEADER_BYTES + 4 * 100)
    again = drain(Reader(ring))
    assert [(r.position, len(r.samples)) for r in again] == [(2148, 1948), (4096, 904)]
    np.testing.assert_array_equal(again[0].samples, ramp(2148, 1948))
    # Killed between the two stores of `advance`: `played` is ahead of `tail`.
    ring.advance(0, third.begin + RECORD_HEADER_BYTES + 4 * 4)
    assert [(r.position, len(r.samples)) for r in drain(Reader(ring))] == [(4100, 900)]


def test_settings_are_shared(ring: Ring) -> None:
    other = Ring.attach(os.dup(ring.fd))
    ring.gain, ring.paused, ring.fence = 0.25, True, 9
    assert (other.gain, other.paused, other.fence) == (0.25, True, 9)
    with pytest.raises(ValueError, match="gain must be"):
        ring.gain = float("nan")
    other.close()
    other.close()


def test_what_is_no_ring_is_refused() -> None:
    fd = os.memfd_create("other")
    with pytest.raises(RingError, match="only 0 bytes"):
        Ring.attach(fd)
    os.ftruncate(fd, HEADER_BYTES + SMALL)
    with pytest.raises(RingError, match="not a sound ring of version"):
        Ring.attach(fd)
    os.close(fd)
    with pytest.raises(ValueError, match="multiple of 64"):
        Ring.create(1000)


def test_the_memory_cannot_be_cut_under_the_reader(ring: Ring) -> None:
    with pytest.raises(PermissionError):
        os.ftruncate(ring.fd, HEADER_BYTES)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 0, ramp(0, 1), 24000),
        (1, -1, ramp(0, 1), 24000),
        (1, 0, ramp(0, 1), 0),
        (1, 0, np.zeros((2, 2), np.float32), 24000),
        (1, 0, np.zeros(2), 24000),
    ],
)
def test_nonsense_is_not_written(ring: Ring, wake: int, arguments: tuple) -> None:
    with pytest.raises(ValueError, match=r"samples must be|no sound can be written"):
        Writer(ring, wake).write(*arguments)
    assert ring.used == 0


@pytest.mark.parametrize("word", [0, 8, 32])
def test_a_damaged_record_is_left_out_with_an_error(ring: Ring, wake: int, word: int) -> None:
    writer, reader = Writer(ring, wake), Reader(ring)
    writer.write(1, 0, ramp(0, 100), 24000)
    struct.pack_into("<I", ring.memory, HEADER_BYTES + word, 0xFFFF_FFFF)
    with pytest.raises(RingError, match="damaged record at byte 0"):
        reader.read()
    writer.write(2, 0, ramp(0, 10), 24000)
    assert [r.generation for r in drain(reader)] == [2]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 5000), st.booleans()),
        st.tuples(st.just("read"), st.integers(1, 5)),
        st.tuples(st.just("fence")),
        st.tuples(st.just("revoke")),
        st.tuples(st.just("restart"), st.integers(0, 2500)),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_any_order_of_writes_reads_cancels_and_restarts(steps: list[tuple]) -> None:
    """The reader sees exactly what was written, in order, whatever stands between."""
    ring = Ring.create(SMALL)
    wake = os.eventfd(0, os.EFD_NONBLOCK)
    writer, reader = Writer(ring, wake), Reader(ring)
    value, generation = 0, 1
    written: list[float] = []
    heard: list[float] = []
    last: Record | None = None

    def read() -> bool:
        nonlocal last
        record = reader.read()
        if record is None:
            return False
        heard.extend(record.samples.tolist())
        last = record
        ring.advance(record.begin, record.start)  # the last one stays, as if it were sounding
        return True

    for step, *arguments in steps:
        if step == "write":
            count = min(arguments[0], max(0, ring.free // 8 - 2 * RECORD_FRAMES))
            sent = writer.write(generation, 0, ramp(value, count), 16000, last=arguments[1])
            assert sent != ring.is_dropped(generation)
            if sent:
                written.extend(range(value, value + count))
                value += count
        elif step == "read":
            for _ in range(arguments[0]):
                read()
        elif step == "fence":
            ring.fence = generation + 1
            assert not writer.write(generation, 0, ramp(0, 10), 16000)
            generation += 1
        elif step == "revoke":
            ring.revoke(generation)
            assert not writer.write(generation, 0, ramp(0, 10), 16000)
            generation += 1
        elif last is not None:
            # The player dies in the middle of the last record and a new one takes over.
            keep = min(arguments[0], len(last.samples))
            heard[len(heard) - len(last.samples) + keep :] = []
            ring.advance(last.begin, last.start + 4 * keep)
            reader, last = Reader(ring), None
    while read():
        pass
    assert heard == written
    ring.close()
    os.close(wake)


WRITER = """
import sys, numpy as np
from utterd.audio.ring import Ring, Writer
ring = Ring.attach(int(sys.argv[1]))
writer = Writer(ring, int(sys.argv[2]))
position = int(sys.argv[3])
print("writing", flush=True)
while True:
    count = 1 + position * 7919 % 3000
    samples = np.arange(position, position + count, dtype=np.float32)
    writer.write(1, position, samples, 24000)
    position += count
"""


def test_a_killed_writer_leaves_whole_records(wake: int) -> None:
    """Killed at any moment, the writer leaves a ring that reads well and can be written on."""
    ring = Ring.create(SMALL)
    reader = Reader(ring)
    position = 0
    for round_ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(ring.fd), str(wake), str(position)],
            pass_fds=(ring.fd, wake),
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"writing\n"
        target = position + 30_000 + 1777 * round_
        while position < target:
            if record := reader.read():
                assert record.position == position
                np.testing.assert_array_equal(record.samples, ramp(position, len(record.samples)))
                position += len(record.samples)
                ring.advance(record.end, record.end)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        while record := reader.read():
            np.testing.assert_array_equal(record.samples, ramp(position, len(record.samples)))
            position += len(record.samples)
            ring.advance(record.end, record.end)
        assert ring.used == 0
    ring.close()
