"""A stand-in for `pynvml`, since these tests run where there is no GPU. It was never a GPU.

It has the names, values and error classes of the real package for every call that
`utterd.sysconfig.nvml` makes (a test compares them with the real package), and misbehaves where it
is told: see `Board.faults`.
"""

from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace


class NVMLError(Exception):
    """As in the real package, the base of one class for each error."""

    value = 999
    text = "Unknown Error"

    def __str__(self) -> str:
        return self.text


def _error(name: str, value: int, text: str) -> type[NVMLError]:
    return type(name, (NVMLError,), {"value": value, "text": text})


ERRORS = {
    name: _error(name, value, text)
    for name, value, text in (
        ("NVMLError_InvalidArgument", 2, "Invalid Argument"),
        ("NVMLError_NotSupported", 3, "Not Supported"),
        ("NVMLError_NoPermission", 4, "Insufficient Permissions"),
        ("NVMLError_NotFound", 6, "Not Found"),
        ("NVMLError_DriverNotLoaded", 9, "Driver Not Loaded"),
        ("NVMLError_Timeout", 10, "Timeout"),
        ("NVMLError_LibraryNotFound", 12, "NVML Shared Library Not Found"),
        ("NVMLError_GpuIsLost", 15, "GPU is lost"),
        ("NVMLError_LibRmVersionMismatch", 18, "RM has detected an NVML/RM version mismatch."),
        ("NVMLError_InUse", 19, "NVML Error with code 19"),
    )
}
CONSTANTS = {
    "NVML_CLOCK_SM": 1,
    "NVML_CLOCK_LIMIT_ID_TDP": 0xFFFFFF01,
    "nvmlClocksEventReasonGpuIdle": 0x1,
    "nvmlClocksEventReasonSwPowerCap": 0x4,
    "nvmlClocksThrottleReasonHwSlowdown": 0x8,
    "nvmlClocksEventReasonSwThermalSlowdown": 0x20,
    "nvmlClocksThrottleReasonHwThermalSlowdown": 0x40,
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": 0x80,
}
RATED, HIGHEST, IDLE = 1500, 1980, 210


@dataclass
class Board:
    """One GPU and how it misbehaves."""

    uuid: str = "GPU-0b7c"
    name: str = "NVIDIA Stand-in"
    bus: str = "00000000:01:00.0"
    persistence: int = 0
    locked: bool = False
    loaded: bool = False
    """Whether something computes on it."""
    reasons: int = 0
    holds: bool = True
    """Whether it keeps a locked clock."""
    limit: int = 300_000
    faults: dict[str, str] = field(default_factory=dict)
    """By function, the error it raises."""
    calls: list[str] = field(default_factory=list)


def build(*boards: Board, driver_fault: str = "") -> ModuleType:
    """Make a module like pynvml with these GPUs.

    Args:
        boards: The GPUs.
        driver_fault: Error of nvmlInit, such as NVMLError_LibRmVersionMismatch.
    """
    module = ModuleType("pynvml_stand_in")
    for name, value in {**ERRORS, **CONSTANTS, "NVMLError": NVMLError}.items():
        setattr(module, name, value)

    def init() -> None:
        if driver_fault:
            raise ERRORS[driver_fault]

    library = {
        "nvmlInit": init,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "560.35.03",
        "nvmlSystemGetCudaDriverVersion": lambda: 12060,
        "nvmlDeviceGetCount": lambda: len(boards),
        "nvmlDeviceGetHandleByIndex": lambda index: boards[index],
    }
    for name, function in {**library, **_device_calls()}.items():
        setattr(module, name, _guarded(name, function))
    return module


def _device_calls() -> dict:
    def set_persistence(board: Board, mode: int) -> None:
        board.persistence = mode

    def lock(board: Board, low: int, high: int) -> None:
        assert low == high == CONSTANTS["NVML_CLOCK_LIMIT_ID_TDP"]
        board.locked = True

    def unlock(board: Board) -> None:
        board.locked = False

    def clock(board: Board, _kind: int) -> int:
        if board.locked and board.holds:
            return RATED
        return HIGHEST if board.loaded and not board.reasons else IDLE

    def reasons(board: Board) -> int:
        return board.reasons | (0 if board.loaded else 1)

    def processes(board: Board) -> list:
        return [SimpleNamespace(pid=4711)] if board.loaded else []

    return {
        "nvmlDeviceGetUUID": lambda board: board.uuid,
        "nvmlDeviceGetName": lambda board: board.name,
        "nvmlDeviceGetPciInfo": lambda board: SimpleNamespace(busId=board.bus),
        "nvmlDeviceGetPersistenceMode": lambda board: board.persistence,
        "nvmlDeviceSetPersistenceMode": set_persistence,
        "nvmlDeviceSetGpuLockedClocks": lock,
        "nvmlDeviceResetGpuLockedClocks": unlock,
        "nvmlDeviceGetClockInfo": clock,
        "nvmlDeviceGetMaxClockInfo": lambda _board, _kind: HIGHEST,
        "nvmlDeviceGetCurrentClocksEventReasons": reasons,
        "nvmlDeviceGetPowerManagementLimit": lambda board: board.limit,
        "nvmlDeviceGetPowerManagementDefaultLimit": lambda _board: 300_000,
        "nvmlDeviceGetComputeRunningProcesses": processes,
    }


def _guarded(name: str, function):
    """Raise where a board's faults say so, and note the call."""

    def call(*arguments):
        board = arguments[0] if arguments and isinstance(arguments[0], Board) else None
        if board is not None:
            board.calls.append(name)
            if fault := board.faults.get(name):
                raise ERRORS[fault]
        return function(*arguments)

    return call
