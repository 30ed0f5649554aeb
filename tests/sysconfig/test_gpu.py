"""NVML, against a stand-in (there is no GPU here): errors, locks, clocks that do not hold."""

import errno

import pynvml
import pytest

from tests.sysconfig import pynvml_stand_in as stand_in
from tests.sysconfig.conftest import CAR
from tests.sysconfig.pynvml_stand_in import Board, build
from utterd.sysconfig.check import Scene, Verdict
from utterd.sysconfig.checks import gpu as check
from utterd.sysconfig.knob import Level, Outcome, State
from utterd.sysconfig.nvml import ERRNO, THROTTLED, Nvml, NvmlError


def test_the_stand_in_has_the_real_package_names_and_values():
    module = build(Board())
    for name, error in stand_in.ERRORS.items():
        real = pynvml.NVMLError(error.value)
        assert type(real).__name__ == name
        assert str(real) == error.text
    for name, value in stand_in.CONSTANTS.items():
        assert getattr(pynvml, name) == value
    functions = [name for name in vars(module) if name.startswith("nvmlDeviceGet")]
    functions += ["nvmlInit", "nvmlShutdown", "nvmlDeviceSetGpuLockedClocks"]
    assert all(callable(getattr(pynvml, name)) for name in functions)


def test_every_error_and_reason_we_know_is_one_of_nvml():
    assert all(hasattr(pynvml, name) for name in (*ERRNO, *THROTTLED))


def test_without_a_driver_the_real_package_is_merely_empty():
    nvml = Nvml.open()
    try:
        if nvml.error is None:
            assert nvml.driver()
        else:
            assert nvml.gpus() == []
    finally:
        nvml.close()


def clocks(box):
    return next(s for s in box.tuner().verify(CAR) if s.knob == "gpu_clocks")


def test_persistence_comes_before_the_lock(box):
    box.tuner().apply(CAR)
    calls = [name for name in box.board.calls if "Set" in name]
    assert calls == ["nvmlDeviceSetPersistenceMode", "nvmlDeviceSetGpuLockedClocks"]
    assert (box.board.persistence, box.board.locked) == (1, True)
    box.tuner().restore()
    assert (box.board.persistence, box.board.locked) == (0, False)


def test_persistence_that_was_on_stays_on(box):
    box.board.persistence = 1
    box.tuner().apply(CAR)
    box.tuner().restore()
    assert box.board.persistence == 1


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("NVMLError_NotSupported", Outcome.UNSUPPORTED),
        ("NVMLError_InvalidArgument", Outcome.UNSUPPORTED),
        ("NVMLError_NoPermission", Outcome.REFUSED),
        ("NVMLError_GpuIsLost", Outcome.UNSUPPORTED),
        ("NVMLError_InUse", Outcome.PENDING),
        ("NVMLError_Timeout", Outcome.PENDING),
        ("NVMLError_LibRmVersionMismatch", Outcome.REFUSED),
    ],
)
@pytest.mark.parametrize("call", ["nvmlDeviceSetPersistenceMode", "nvmlDeviceSetGpuLockedClocks"])
def test_refused_by_the_driver(box, call, fault, outcome):
    box.board.faults[call] = fault
    results, _ = box.tuner().apply(CAR)
    knob = "gpu_clocks" if "Clocks" in call else "gpu_persistence"
    assert [r.outcome for r in results if r.change.knob == knob] == [outcome]
    assert {r.outcome for r in results if r.change.knob != knob} == {Outcome.APPLIED}
    box.board.faults.clear()
    box.tuner().restore()
    assert (box.board.persistence, box.board.locked) == (0, False)


@pytest.mark.parametrize("fault", ["NVMLError_LibRmVersionMismatch", "NVMLError_DriverNotLoaded"])
def test_a_driver_that_does_not_start_leaves_the_gpu_out(fault):
    nvml = Nvml.of(build(Board(), driver_fault=fault))
    assert nvml.gpus() == []
    assert nvml.error is not None
    assert nvml.error.errno == ERRNO[fault]


def test_a_gpu_lost_while_locked_is_told_and_forgotten(box):
    box.tuner().apply(CAR)
    for call in ("nvmlDeviceGetClockInfo", "nvmlDeviceGetPersistenceMode"):
        box.board.faults[call] = "NVMLError_GpuIsLost"
    state = clocks(box)
    assert state.state is State.UNSUPPORTED
    assert "GPU is lost" in state.detail
    lost = {r.change.knob: r for r in box.tuner().restore() if r.change.knob.startswith("gpu")}
    assert {r.outcome for r in lost.values()} == {Outcome.UNSUPPORTED}
    assert box.tuner().status() is None


def test_a_clock_that_holds_is_ok_also_when_idle(box):
    box.tuner().apply(CAR)
    assert clocks(box).state is State.OK
    box.board.loaded = True
    assert clocks(box).state is State.OK


def test_a_clock_that_does_not_hold_is_pending_with_the_reason(box):
    box.tuner().apply(CAR)
    box.board.holds, box.board.loaded = False, True
    box.board.reasons = stand_in.CONSTANTS["nvmlClocksEventReasonSwPowerCap"]
    state = clocks(box)
    assert state.state is State.PENDING
    assert state.detail == "held at 210 of 1980 MHz by power limit"


def test_a_driver_loaded_anew_has_forgotten_the_lock(box):
    """NVML can't be asked about a lock, but persistence, which we had switched on, is off."""
    box.tuner().apply(CAR)
    box.board.persistence, box.board.locked = 0, False
    assert clocks(box).state is State.DRIFTED
    box.tuner().apply(CAR)
    assert (box.board.persistence, box.board.locked) == (1, True)


def test_an_idle_gpu_proves_nothing(box):
    box.tuner().apply(CAR)
    box.board.holds = False
    assert "under load" in clocks(box).detail


def test_a_lowered_power_limit_is_advice(box):
    box.board.limit = 150_000
    notes = [note for note in box.tuner().plan(CAR).notes if note.knob == "gpu_power"]
    assert [(note.level, note.text) for note in notes] == [
        (Level.ADVICE, "limited to 150 W, the board allows 300 W")
    ]


def test_the_doctor_sees_a_gpu_that_does_not_answer(box):
    nvml = Nvml.of(build(Board(), driver_fault="NVMLError_LibRmVersionMismatch"))
    findings = list(check.gpu(Scene(fs=box.fs, nvml=nvml)))
    assert [finding.verdict for finding in findings] == [Verdict.BROKEN]
    assert "reboot" in findings[0].mend


def test_the_doctor_sees_a_gpu_that_fell_off_the_bus(box):
    nvml = Nvml.of(build())
    findings = list(check.gpu(Scene(fs=box.fs, nvml=nvml)))
    assert findings[-1].verdict is Verdict.BROKEN
    assert "0000:01:00.0" in findings[-1].found


def test_the_doctor_sees_a_hot_gpu(box):
    box.board.loaded = True
    box.board.reasons = stand_in.CONSTANTS["nvmlClocksThrottleReasonHwThermalSlowdown"]
    findings = list(check.gpu(Scene(fs=box.fs, nvml=Nvml.of(build(box.board)))))
    assert findings[-1].verdict is Verdict.WARNING
    assert "temperature" in findings[-1].found


def test_errors_keep_their_words():
    board = Board(faults={"nvmlDeviceGetPersistenceMode": "NVMLError_NotSupported"})
    nvml = Nvml.of(build(board))
    with pytest.raises(NvmlError, match="Not Supported") as raised:
        nvml.persistence(nvml.gpus()[0])
    assert raised.value.errno == errno.ENOTSUP
