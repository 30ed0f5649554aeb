"""When a device that ran empty gets a larger buffer."""

from types import SimpleNamespace

import pytest

from utterd.audio import portaudio
from utterd.audio.messages import Configure
from utterd.audio.portaudio import DeviceSink
from utterd.audio.sink import Format, SinkError

OPENED = Format("spk", 48_000, 2, 240, 20.0)


class Machine:
    """A device that runs empty when told to, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, period_ms: float = 5.0) -> None:
        self.now = 1000.0
        self.host_underruns = 0
        self.generation = 0
        monkeypatch.setattr(portaudio, "introduce", lambda role, rate: None)
        monkeypatch.setattr(portaudio, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.sink = DeviceSink(self, Configure(period_ms=period_ms))

    def place(self) -> tuple[int, int]:
        return self.generation, 0

    def runs_empty(self, after_s: float, times: int = 1) -> SinkError | None:
        self.now += after_s
        self.host_underruns += times
        return self.sink._late(OPENED)


def test_three_times_within_ten_minutes_are_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    assert [machine.runs_empty(299), machine.runs_empty(299)] == [None, None]
    error = machine.runs_empty(299)
    assert error is not None
    assert "3 times within 598 s" in error.message
    assert error.message.endswith("opening it with 25 ms")
    assert machine.sink._late(OPENED) is None, "the larger buffer has its own three times"


def test_whichever_ten_minutes_these_are(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    assert [machine.runs_empty(s) for s in (1, 550, 100)] == [None] * 3
    assert machine.runs_empty(50) is not None


def test_it_waits_for_the_end_of_what_sounds_however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.generation = 1
    assert [machine.runs_empty(10) for _ in range(5)] == [None] * 5
    machine.now += 3600
    machine.generation = 0
    assert machine.sink._late(OPENED) is not None


def test_one_long_hold_up_is_no_habit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Machine(monkeypatch).runs_empty(1, times=20) is None


def test_the_largest_buffer_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, period_ms=100.0)
    assert [machine.runs_empty(1) for _ in range(5)] == [None] * 5
