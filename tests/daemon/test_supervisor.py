"""The supervisor, with real children: started, watched, killed, started again, none left."""

import asyncio
import errno
import gc
import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from utterd.daemon import supervisor
from utterd.daemon.supervisor import TRANSITIONS, Child, State, Stimulus

PROGRAM = Path(__file__).with_name("supervised.py")
PATIENCE_S = 20.0


class Process:
    """The daemon's end of a child."""

    def __init__(self, *orders: str, buffer: int = 0) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(PROGRAM), str(theirs.fileno()), *orders],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        ours.setblocking(False)
        if buffer:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        self._socket = ours
        self.pid = self._process.pid

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: str) -> None:
        try:
            self._socket.send(message.encode())
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self) -> list[str]:
        arrived: list[str] = []
        while True:
            try:
                packet = self._socket.recv(1000)
            except BlockingIOError:
                return arrived
            except ConnectionResetError:
                packet = b""
            if not packet:
                if arrived:
                    return arrived
                raise EOFError
            arrived.append(packet.decode())

    def kill(self) -> None:
        self._process.kill()

    def close(self, timeout_s: float) -> int:
        self._socket.close()
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class Watched:
    """A supervised child, what it said and how its lives ended."""

    def __init__(
        self, *lives: tuple[str, ...], ready_timeout_s: float = PATIENCE_S, buffer: int = 0
    ) -> None:
        self.said: list[str] = []
        self.lost: list[str] = []
        self.pids: list[int] = []
        self.after_loss: Callable[[], None] = lambda: None
        orders = itertools.chain(lives, itertools.repeat(lives[-1]))

        def spawn() -> Process:
            process = Process(*next(orders), buffer=buffer)
            self.pids.append(process.pid)
            return process

        self.child = Child("test", spawn, self._hear, self._lose, ready_timeout_s)

    def _hear(self, message: str) -> None:
        self.said.append(message)
        if message == "ready":
            self.child.ready()
        elif message == "broken":
            self.child.broken()
        elif message == "stop me":
            self.child.stop("exit 0", PATIENCE_S)

    def _lose(self, reason: str) -> None:
        self.lost.append(reason)
        self.after_loss()

    async def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f"{self.child.state}, {self.said}, {self.lost}"
            await asyncio.sleep(0.005)

    def nothing_is_left(self) -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in self.pids)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test, and see that it leaves no descriptor open."""
    gc.collect()  # what earlier tests left must not be closed meanwhile
    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(test())
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "BACK_OFF_S", (0.0, 0.01, 0.02))


def test_a_child_is_ready_and_stops_when_asked() -> None:
    async def test() -> None:
        one = Watched(("say ready",))
        assert (one.child.state, one.child.pid) == (State.STOPPED, 0)
        one.child.start()
        one.child.start()
        assert one.child.state is State.STARTING
        await one.until(lambda: one.child.state is State.READY)
        assert one.child.pid == one.pids[0]
        one.child.send("say hello")
        await one.until(lambda: "hello" in one.said)
        one.child.stop("exit 0", PATIENCE_S)
        assert (one.child.state, one.child.pid, len(one.pids)) == (State.STOPPED, 0, 1)
        assert one.nothing_is_left()
        one.child.send("say nobody hears this")
        assert one.lost == []

    run(test)


@pytest.mark.parametrize(
    ("order", "reason"), [("exit 3", "exit code 3"), ("die", "signal 11"), ("close", "signal 9")]
)
def test_a_child_that_ends_is_started_again(order: str, reason: str) -> None:
    async def test() -> None:
        one = Watched(("say ready", order), ("say ready",))
        one.child.start()
        await one.until(lambda: len(one.pids) == 2 and one.child.state is State.READY)
        assert one.lost == [reason]
        assert one.child.restarts == 1
        assert one.said == ["ready", "ready"]
        one.child.stop("exit 0", PATIENCE_S)
        assert one.nothing_is_left()

    run(test)


def test_the_back_off_grows_and_a_stable_life_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        one = Watched(("exit 1",))
        waits = []
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def note(delay: float, callback: Callable[..., object], *args: Any) -> Any:
            if callback == one.child.start:
                waits.append(delay)
            return call_later(delay, callback, *args)

        monkeypatch.setattr(loop, "call_later", note)
        one.child.start()
        await one.until(lambda: len(waits) >= 4)
        monkeypatch.setattr(supervisor, "STABLE_S", 0.0)
        count = len(waits)
        await one.until(lambda: len(waits) > count)
        one.child.stop("exit 0", PATIENCE_S)
        assert waits[:4] == [0.0, 0.01, 0.02, 0.02]
        assert waits[count] == 0.0
        assert one.nothing_is_left()

    run(test)


def test_one_that_did_its_work_is_started_again_at_once_however_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        monkeypatch.setattr(supervisor, "BACK_OFF_S", (0.0, 3600.0))
        one = Watched(("say ready",))
        one.child.start()
        for life in range(1, 6):
            await one.until(lambda: one.child.state is State.READY)
            one.child.worked()
            one.child.send("exit 1")
            await one.until(lambda life=life: len(one.pids) > life)
        await one.until(lambda: one.child.state is State.READY)
        one.child.send("exit 1")
        await one.until(lambda: one.child.state is State.WAITING)
        one.child.stop("exit 0", PATIENCE_S)
        assert one.nothing_is_left()

    run(test)


def test_one_that_is_not_ready_in_time_is_killed() -> None:
    async def test() -> None:
        one = Watched(("hang",), ready_timeout_s=0.05)
        one.child.start()
        await one.until(lambda: len(one.lost) == 1)
        assert one.lost[0].startswith("not ready")
        one.child.stop("exit 0", 0.0)
        assert one.nothing_is_left()

    run(test)


def test_a_kill_names_its_reason() -> None:
    async def test() -> None:
        one = Watched(("say ready", "hang"), ("say ready",))
        one.child.start()
        await one.until(lambda: one.child.state is State.READY)
        one.child.kill("no progress")
        await one.until(lambda: len(one.pids) == 2)
        assert one.lost == ["no progress"]
        one.child.stop("exit 0", PATIENCE_S)
        assert one.nothing_is_left()

    run(test)


@pytest.mark.parametrize("orders", [("say broken", "exit 1"), ("say ready", "say broken", "hang")])
def test_a_broken_one_is_over_and_not_started_again_by_itself(orders: tuple[str, ...]) -> None:
    async def test() -> None:
        one = Watched(orders, ("say ready",))
        one.child.start()
        await one.until(lambda: one.child.state is State.BROKEN)
        assert one.child.pid == 0
        assert len(one.lost) == 1
        assert one.nothing_is_left()
        await asyncio.sleep(0.1)
        assert (one.child.state, len(one.pids)) == (State.BROKEN, 1)
        one.child.start()
        await one.until(lambda: one.child.state is State.READY)
        assert one.child.restarts == 0
        one.child.stop("exit 0", PATIENCE_S)
        assert one.nothing_is_left()

    run(test)


def test_a_broken_one_can_be_started_at_once() -> None:
    """The old life is closed first, so that its end is not taken for the new one's."""

    async def test() -> None:
        one = Watched(("say broken", "hang"), ("say ready",))
        one.after_loss = one.child.start
        one.child.start()
        await one.until(lambda: one.child.state is State.READY)
        assert len(one.pids) == 2
        one.after_loss = lambda: None
        one.child.stop("exit 0", PATIENCE_S)
        assert one.nothing_is_left()

    run(test)


def test_nothing_is_heard_of_a_life_that_is_over() -> None:
    async def test() -> None:
        one = Watched(("say ready", "say stop me", "say too late"))
        one.child.start()
        await one.until(lambda: one.child.state is State.STOPPED)
        assert "too late" not in one.said
        assert one.nothing_is_left()

    run(test)


def test_one_that_takes_no_messages_is_killed() -> None:
    async def test() -> None:
        one = Watched(("say ready", "hang"), ("say ready",), buffer=4096)
        one.child.start()
        await one.until(lambda: one.child.state is State.READY)
        for _ in range(2000):
            one.child.send("say x" * 100)
        await one.until(lambda: len(one.pids) == 2 and one.child.state is State.READY)
        assert one.lost == ["it takes no messages"]
        one.child.stop("exit 0", PATIENCE_S)
        assert one.nothing_is_left()

    run(test)


def test_one_that_hangs_at_its_end_is_killed() -> None:
    async def test() -> None:
        one = Watched(("say ready", "hang"))
        one.child.start()
        await one.until(lambda: one.child.state is State.READY)
        one.child.stop("exit 0", 0.05)
        assert one.nothing_is_left()

    run(test)


def test_one_that_cannot_be_started_is_tried_again() -> None:
    async def test() -> None:
        lost: list[str] = []
        processes: list[Process] = []
        ready = asyncio.Event()

        def spawn() -> Process:
            if len(lost) < 3:
                raise OSError(errno.EAGAIN, "no more processes")
            processes.append(Process("say ready"))
            return processes[-1]

        def hear(_: str) -> None:
            child.ready()
            ready.set()

        child = Child("test", spawn, hear, lost.append, PATIENCE_S)
        child.start()
        await asyncio.wait_for(ready.wait(), PATIENCE_S)
        assert lost == ["it can't be started: no more processes"] * 3
        child.stop("exit 0", PATIENCE_S)

    run(test)


def test_stopped_while_it_waits_for_its_next_life() -> None:
    async def test() -> None:
        one = Watched(("exit 1",))
        one.after_loss = lambda: one.child.stop("exit 0", 0.0) if len(one.lost) == 2 else None
        one.child.start()
        await one.until(lambda: len(one.lost) == 2)
        await asyncio.sleep(0.1)
        assert (one.child.state, len(one.pids)) == (State.STOPPED, 2)
        assert one.nothing_is_left()

    run(test)


def test_every_state_can_be_stopped_and_none_is_a_dead_end() -> None:
    for state in State:
        assert TRANSITIONS[state, Stimulus.STOP] is State.STOPPED
        assert (
            any(
                before is state and after is not state for (before, _), after in TRANSITIONS.items()
            )
            or state is State.STOPPED
        )


def test_a_renewed_child_ends_by_itself_and_the_next_comes_without_delay(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        # What counts as a failure would wait for ever.
        monkeypatch.setattr(supervisor, "BACK_OFF_S", (0.0, 3600.0))
        one = Watched(("say ready",))
        one.child.start()
        for number in range(1, 4):
            await one.until(lambda: one.child.state is State.READY)
            one.child.renew("exit 0", "it is too large")
            assert one.child.state is State.RENEWING
            await one.until(lambda n=number: len(one.pids) > n)
        await one.until(lambda: one.child.state is State.READY)
        assert (one.child.restarts, one.child.renewals) == (3, 3)
        assert one.lost == ["it is too large"] * 3
        one.child.stop("exit 0", PATIENCE_S)
        assert one.nothing_is_left()
        assert not [record for record in caplog.records if record.levelname == "WARNING"]

    run(test)


def test_a_child_that_does_not_end_to_be_renewed_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        monkeypatch.setattr(supervisor, "RENEWAL_S", 0.05)
        one = Watched(("say ready",))
        one.child.start()
        await one.until(lambda: one.child.state is State.READY)
        one.child.renew("hang", "it is too large")
        await one.until(lambda: len(one.pids) == 2 and one.child.state is State.READY)
        assert one.child.renewals == 1
        one.child.stop("exit 0", PATIENCE_S)
        assert one.nothing_is_left()

    run(test)


def test_a_child_can_be_stopped_while_it_is_renewed() -> None:
    async def test() -> None:
        one = Watched(("say ready",))
        one.child.start()
        await one.until(lambda: one.child.state is State.READY)
        one.child.renew("hang", "it is too large")
        one.child.stop("exit 0", 0.0)
        assert one.child.state is State.STOPPED
        await asyncio.sleep(0.05)
        assert len(one.pids) == 1
        assert one.nothing_is_left()

    run(test)
