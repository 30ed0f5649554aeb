"""irqbalance's socket, against a stand-in of its protocol (the real one is in tests/vm)."""

import re
import socket
import threading

import pytest

from tests.sysconfig import machines
from tests.sysconfig.conftest import CAR
from utterd.sysconfig import irqbalance
from utterd.sysconfig.knob import Level, Outcome, State


class StandIn:
    """Answers `setup`, takes `settings ban irqs`; obeys only while `obeys`."""

    def __init__(self, root, *banned):
        self.banned = set(banned)
        self.obeys = True
        path = root / "run/irqbalance/irqbalance4711.sock"
        path.parent.mkdir(parents=True)
        machines._Tree(root)("proc/4711/comm", "irqbalance")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self):
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            with link:
                words = link.recv(4096).decode()
                if not self.obeys:
                    continue
                if words == "setup":
                    irqs = "".join(f"IRQ {n} LOAD 0 DIFF 0 CLASS 0 " for n in sorted(self.banned))
                    link.sendall(f"SLEEP 10 {irqs}BANNED 00000000".encode())
                elif match := re.fullmatch(r"settings ban irqs (.*)", words):
                    numbers = match.group(1)
                    self.banned = {int(n) for n in numbers.split()} if numbers != "NONE" else set()


@pytest.fixture
def server(box):
    server = StandIn(box.root, 17)
    yield server
    server.close()


def bans(results):
    return [r for r in results if r.change.knob == "irqbalance"]


def test_ours_are_added_and_taken_away_and_the_admins_stay(box, server):
    results, _ = box.tuner().apply(CAR)
    assert {r.outcome for r in bans(results)} == {Outcome.APPLIED}
    assert server.banned == {17, 33, 40, 41}
    assert {s.state for s in box.tuner().verify(CAR) if s.knob == "irqbalance"} == {State.OK}
    box.tuner().restore()
    assert server.banned == {17}


def test_a_ban_the_admin_made_himself_is_not_lifted(box, server):
    server.banned.add(33)
    box.tuner().apply(CAR)
    box.tuner().restore()
    assert server.banned == {17, 33}


def test_bans_come_before_the_interrupts(box, server):
    knobs = [change.knob for change in box.tuner().plan(CAR).changes]
    assert knobs.index("irqbalance") < knobs.index("interrupts")


def test_a_restarted_irqbalance_has_forgotten(box, server):
    box.tuner().apply(CAR)
    server.banned = {17}
    states = {s.state for s in box.tuner().verify(CAR) if s.knob == "irqbalance"}
    assert states == {State.DRIFTED}
    box.tuner().apply(CAR)
    assert server.banned == {17, 33, 40, 41}


def test_one_that_does_not_obey_is_reported(box, server):
    server.obeys = False
    due = box.tuner().plan(CAR)
    notes = [note for note in due.notes if note.knob == "irqbalance"]
    assert notes
    assert "root only" in notes[0].text
    with pytest.raises(OSError, match="root only"):
        irqbalance.banned(box.fs)


def test_the_last_ban_can_be_lifted(box, server):
    irqbalance.ban(box.fs, frozenset())
    assert irqbalance.banned(box.fs) == frozenset()


def test_without_a_socket_it_is_a_conflict_with_the_option_to_add(box):
    machines._Tree(box.root)("proc/99/comm", "irqbalance")
    notes = [note for note in box.tuner().plan(CAR).notes if note.knob == "irqbalance"]
    assert [note.level for note in notes] == [Level.CONFLICT]
    assert "--banirq=33" in notes[0].text


def test_a_socket_of_a_dead_one_is_passed_over(box):
    path = box.root / "run/irqbalance/irqbalance1.sock"
    path.parent.mkdir(parents=True)
    path.touch()
    assert irqbalance.sockets(box.fs) == []
    with pytest.raises(OSError, match="no socket"):
        irqbalance.banned(box.fs)
