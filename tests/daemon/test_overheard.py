"""What children write on standard error becomes records, whatever it is and however it comes."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utterd.daemon.overheard import Overheard

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: why'


def overhear(write: Callable[[int], None]) -> list[logging.LogRecord]:
    """What is logged of a child that writes so."""
    told: list[logging.LogRecord] = []
    keep = logging.Handler()
    keep.emit = told.append  # type: ignore[method-assign]

    async def listen() -> None:
        overheard = Overheard("worker")
        overheard.listen()
        write(overheard.fd)
        await asyncio.sleep(0.01)
        overheard.close()

    logging.getLogger().addHandler(keep)
    try:
        asyncio.run(listen())
    finally:
        logging.getLogger().removeHandler(keep)
    assert all(record.child == "worker" for record in told)  # type: ignore[attr-defined]
    return told


def shown(records: list[logging.LogRecord]) -> list[tuple[str, str, str]]:
    return [(record.name, record.levelname, record.getMessage()) for record in records]


def test_a_record_keeps_its_level_its_room_and_its_traceback() -> None:
    written = f"ERROR engine: utterance u7 failed\n{TRACEBACK}\nWARNING nursery: late\n"
    assert shown(overhear(lambda fd: _write(fd, written))) == [
        ("engine", "ERROR", f"utterance u7 failed\n{TRACEBACK}"),
        ("nursery", "WARNING", "late"),
    ]


def test_the_words_of_a_library_are_a_warning_of_the_child() -> None:
    assert shown(overhear(lambda fd: _write(fd, "ALSA lib pcm.c: no\n\n"))) == [
        ("worker", "WARNING", "ALSA lib pcm.c: no")
    ]


def test_a_line_that_was_never_ended_is_told_at_the_end() -> None:
    assert shown(overhear(lambda fd: _write(fd, "Fatal Python error"))) == [
        ("worker", "WARNING", "Fatal Python error")
    ]


def test_what_a_real_child_logs_before_it_dies_is_heard() -> None:
    program = (
        "import logging, os; logging.basicConfig(format='%(levelname)s %(name)s: %(message)s');"
        "logging.getLogger('engine').error('100 %s of it'); os.abort()"
    )
    records = overhear(lambda fd: _run([sys.executable, "-c", program], fd))
    assert shown(records) == [("engine", "ERROR", "100 %s of it")]


@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"\0\n", b"\n", b"ERROR engine:\n", b"x" * 60_000])
def test_any_bytes_are_taken(data: bytes) -> None:
    records = overhear(lambda fd: _write(fd, data))
    assert len(records) == (data != b"\n")


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), max_size=8))
def test_nothing_is_lost_however_it_is_cut(lines: list[str]) -> None:
    written = "".join(f"{line}\n" for line in lines).encode()

    def write(fd: int) -> None:
        for byte in range(0, len(written), 7):
            os.write(fd, written[byte : byte + 7])

    assert "\n".join(record.getMessage() for record in overhear(write)) == "\n".join(lines)


def _write(descriptor: int, data: str | bytes) -> None:
    os.write(descriptor, data.encode() if isinstance(data, str) else data)


def _run(command: list[str], descriptor: int) -> None:
    subprocess.run(command, stderr=descriptor, check=False)
