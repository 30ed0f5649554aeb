"""What children write on standard error becomes records, whatever it is and however it comes."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utterd.daemon import overheard
from utterd.daemon.overheard import Overheard

CHILD = """
import faulthandler, logging, sys
faulthandler.enable()
logging.basicConfig(format='%(levelname)s %(name)s: %(message)s')
"""
RAISED = "Traceback (most recent call last):\nValueError: why"


@pytest.fixture(autouse=True, scope="module")
def patient() -> Iterator[None]:
    """On a slow machine, too, what is written together comes together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overheard, "_COLLECTED_S", 60.0)
        yield


def overhear(write: Callable[[int], Awaitable[None]]) -> list[logging.LogRecord]:
    """What is logged of a child that writes so."""
    told: list[logging.LogRecord] = []
    keep = logging.Handler()
    keep.emit = told.append  # type: ignore[method-assign]

    async def listen() -> None:
        heard = Overheard("worker")
        heard.listen()
        await write(heard.fd)
        heard.close()

    logging.getLogger().addHandler(keep)
    try:
        asyncio.run(listen())
    finally:
        logging.getLogger().removeHandler(keep)
    assert all(record.child == "worker" for record in told)  # type: ignore[attr-defined]
    return told


def pieces(*written: bytes, pause_s: float = 0.0) -> Callable[[int], Awaitable[None]]:
    async def write(descriptor: int) -> None:
        for piece in written:
            os.write(descriptor, piece)
            await asyncio.sleep(pause_s)

    return write


def child(program: str) -> Callable[[int], Awaitable[None]]:
    async def run(descriptor: int) -> None:
        command = (sys.executable, "-c", CHILD + program)
        process = await asyncio.create_subprocess_exec(*command, stderr=descriptor)
        await process.wait()

    return run


def shown(records: list[logging.LogRecord]) -> list[tuple[str, str, str]]:
    return [(record.name, record.levelname, record.getMessage()) for record in records]


def test_a_record_keeps_its_level_its_room_and_its_traceback() -> None:
    written = f"ERROR engine: utterance u7 failed\n{RAISED}\nWARNING nursery: late\n".encode()
    assert shown(overhear(pieces(written))) == [
        ("engine", "ERROR", f"utterance u7 failed\n{RAISED}"),
        ("nursery", "WARNING", "late"),
    ]


def test_the_words_of_a_library_are_a_warning_of_the_child() -> None:
    assert shown(overhear(pieces(b"ALSA lib pcm.c: no\n\n"))) == [
        ("worker", "WARNING", "ALSA lib pcm.c: no")
    ]


def test_what_a_child_logs_is_heard_as_it_is() -> None:
    program = "logging.getLogger('engine').error('100 %s of it'); logging.error('other')"
    assert shown(overhear(child(program))) == [
        ("engine", "ERROR", "100 %s of it\nERROR root: other")
    ]


@pytest.mark.parametrize(
    ("program", "begins"),
    [
        ("def f(): raise ValueError('why')\nf()", "Traceback"),
        ("faulthandler._sigabrt()", "Fatal Python error"),
    ],
)
def test_what_kills_a_child_is_one_grave_record(program: str, begins: str) -> None:
    ((room, level, said),) = shown(overhear(child(program)))
    assert (room, level) == ("worker", "ERROR")
    assert said.startswith(begins)
    assert len(said.splitlines()) >= 3


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\r", "\v", "\f", "\x1c"])
def test_nothing_but_a_line_begins_a_record(mark: str) -> None:
    written = f"WARNING engine: said {mark}CRITICAL engine: all is lost\n".encode()
    assert [level for _, level, _ in shown(overhear(pieces(written)))] == ["WARNING"]


def test_no_child_speaks_for_the_daemon() -> None:
    assert shown(overhear(pieces(b"CRITICAL main: stopping\n"))) == [
        ("worker", "WARNING", "CRITICAL main: stopping")
    ]


def test_the_end_of_one_child_is_not_the_beginning_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overheard, "_COLLECTED_S", 0.05)
    written = pieces(b"loading 3%", b"ERROR engine: can't load\n", pause_s=0.3)
    assert shown(overhear(written)) == [
        ("worker", "WARNING", "loading 3%"),
        ("engine", "ERROR", "can't load"),
    ]


@pytest.mark.parametrize("line", [b"x" * 50 + b"\n", b"WARNING engine: again\n"])
def test_one_that_babbles_is_cut_short_and_it_is_told(line: bytes) -> None:
    async def babble(descriptor: int) -> None:
        os.set_blocking(descriptor, True)
        await asyncio.to_thread(os.write, descriptor, line * (200_000 // len(line)))

    records = shown(overhear(babble))
    kept = sum(len(said) for _, _, said in records)
    assert kept <= overheard._MOST_BYTES + 100 * len(records)
    assert len(records) <= 10 * (overheard._MOST_RECORDS + 2)
    assert records[-1][2].endswith("bytes more were left out")


def test_it_ends_though_a_child_writes_on() -> None:
    program = "import os\nwhile True:\n try: os.write(2, b'x' * 4096)\n except OSError: pass"
    children: list[subprocess.Popen[bytes]] = []

    async def write(descriptor: int) -> None:
        children.append(subprocess.Popen([sys.executable, "-c", program], stderr=descriptor))
        await asyncio.sleep(0.3)

    try:
        records = shown(overhear(write))
    finally:
        children[0].kill()
        children[0].wait()
    assert records[-1][2].endswith("bytes more were left out")


def test_no_child_waits_for_a_daemon_that_does_not_read() -> None:
    async def write(descriptor: int) -> None:
        assert os.write(descriptor, b"x" * 10**6) < 10**6
        with pytest.raises(BlockingIOError):
            os.write(descriptor, b"x")
        await asyncio.sleep(0)

    overhear(write)


@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"\0\n", b"\n", b"ERROR engine:\n", b""])
def test_any_bytes_are_taken(data: bytes) -> None:
    assert len(overhear(pieces(data))) == (data not in {b"\n", b""})


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8")), max_size=8))
def test_nothing_is_lost_however_it_is_cut(lines: list[str]) -> None:
    written = "".join(f"{line}\n" for line in lines).encode()
    cut = [written[at : at + 7] for at in range(0, len(written), 7)]
    said = "\n".join(record.getMessage() for record in overhear(pieces(*cut)))
    assert said == written.decode().rstrip()
