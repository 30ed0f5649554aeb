"""NVIDIA's management library (package nvidia-ml-py), its errors turned into OSError.

One kind of error for every knob: what NVML calls "not supported" is ENOTSUP, "no permission" is
EPERM, a lost GPU ENODEV, a driver that does not fit its library ELIBBAD.
"""

import errno
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")

ERRNO = {
    "NVMLError_NotSupported": errno.ENOTSUP,
    "NVMLError_NoPermission": errno.EPERM,
    "NVMLError_GpuIsLost": errno.ENODEV,
    "NVMLError_NotFound": errno.ENODEV,
    "NVMLError_DriverNotLoaded": errno.ENODEV,
    "NVMLError_LibraryNotFound": errno.ENOENT,
    "NVMLError_LibRmVersionMismatch": errno.ELIBBAD,
    "NVMLError_InvalidArgument": errno.EINVAL,
    "NVMLError_Timeout": errno.EAGAIN,
    "NVMLError_InUse": errno.EBUSY,
}

THROTTLED = {
    "nvmlClocksEventReasonSwPowerCap": "power limit",
    "nvmlClocksThrottleReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksEventReasonSwThermalSlowdown": "temperature (driver)",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "temperature (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
}


class NvmlError(OSError):
    """An NVML call failed; `errno` says how."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as NVML names it."""

    uuid: str
    handle: object
    name: str
    bus: str
    """PCI address in sysfs's form, such as 0000:01:00.0."""


class Nvml:
    """NVML opened once. Without a GPU, a driver or the package it is merely empty and says why."""

    def __init__(self, library: ModuleType, error: NvmlError | None = None) -> None:
        self._library = library
        self.error = error

    @classmethod
    def absent(cls) -> "Nvml":
        """Stand for a machine that has no NVML."""
        return cls(ModuleType("absent"), NvmlError(errno.ENOENT, "NVML was not asked"))

    @classmethod
    def open(cls) -> "Nvml":
        """Load and start NVML; a failure is kept in `error`, since no GPU is a normal machine."""
        try:
            library = importlib.import_module("pynvml")
        except ImportError:
            message = "the package nvidia-ml-py is not installed"
            return cls(ModuleType("absent"), NvmlError(errno.ENOENT, message))
        return cls.of(library)

    @classmethod
    def of(cls, library: ModuleType) -> "Nvml":
        """Start a library that is already loaded."""
        self = cls(library)
        try:
            self._call(library.nvmlInit)
        except NvmlError as error:
            self.error = error
        return self

    def close(self) -> None:
        """Shut NVML down."""
        if self.error is None:
            self._library.nvmlShutdown()

    def gpus(self) -> list[Gpu]:
        """List the GPUs that answer.

        Raises:
            NvmlError: A GPU is there and does not answer.
        """
        if self.error is not None:
            return []
        n = self._library
        return [
            self._gpu(self._call(n.nvmlDeviceGetHandleByIndex, i))
            for i in range(self._call(n.nvmlDeviceGetCount))
        ]

    def _gpu(self, handle: object) -> Gpu:
        n = self._library
        bus = _text(self._call(n.nvmlDeviceGetPciInfo, handle).busId).lower()
        domain, _, rest = bus.partition(":")
        return Gpu(
            uuid=_text(self._call(n.nvmlDeviceGetUUID, handle)),
            handle=handle,
            name=_text(self._call(n.nvmlDeviceGetName, handle)),
            bus=f"{domain[-4:]}:{rest}",
        )

    def driver(self) -> str:
        """Tell the driver's version.

        Raises:
            NvmlError: It does not answer.
        """
        return _text(self._call(self._library.nvmlSystemGetDriverVersion))

    def cuda_major(self) -> int:
        """Tell the highest major version of CUDA that the driver runs.

        Raises:
            NvmlError: It does not answer.
        """
        return int(self._call(self._library.nvmlSystemGetCudaDriverVersion)) // 1000

    def persistence(self, gpu: Gpu) -> bool:
        """Tell whether the driver stays loaded without clients.

        Raises:
            NvmlError: It can't be told.
        """
        return bool(self._call(self._library.nvmlDeviceGetPersistenceMode, gpu.handle))

    def set_persistence(self, gpu: Gpu, on: bool) -> None:
        """Switch persistence.

        Raises:
            NvmlError: Not supported, not permitted, or the GPU is lost.
        """
        self._call(self._library.nvmlDeviceSetPersistenceMode, gpu.handle, int(on))

    def lock_clocks(self, gpu: Gpu) -> None:
        """Lock the graphics clocks at the rated (TDP) clock, whatever that is on this GPU.

        Raises:
            NvmlError: Before Volta, not permitted, or the GPU is lost.
        """
        limit = self._library.NVML_CLOCK_LIMIT_ID_TDP
        self._call(self._library.nvmlDeviceSetGpuLockedClocks, gpu.handle, limit, limit)

    def unlock_clocks(self, gpu: Gpu) -> None:
        """Let the graphics clocks go.

        Raises:
            NvmlError: As for `lock_clocks`.
        """
        self._call(self._library.nvmlDeviceResetGpuLockedClocks, gpu.handle)

    def clocks_mhz(self, gpu: Gpu) -> tuple[int, int]:
        """Tell the SM clock now and the highest one, in MHz.

        Raises:
            NvmlError: It can't be told.
        """
        n = self._library
        now = self._call(n.nvmlDeviceGetClockInfo, gpu.handle, n.NVML_CLOCK_SM)
        return int(now), int(self._call(n.nvmlDeviceGetMaxClockInfo, gpu.handle, n.NVML_CLOCK_SM))

    def held_back(self, gpu: Gpu) -> tuple[bool, list[str]]:
        """Tell whether the GPU idles, and everything that holds its clocks down right now.

        Raises:
            NvmlError: It can't be told.
        """
        n = self._library
        reasons = int(self._call(n.nvmlDeviceGetCurrentClocksEventReasons, gpu.handle))
        idle = bool(reasons & n.nvmlClocksEventReasonGpuIdle)
        return idle, [text for name, text in THROTTLED.items() if reasons & getattr(n, name)]

    def power_w(self, gpu: Gpu) -> tuple[float, float]:
        """Tell the power limit and the limit the board came with, in W.

        Raises:
            NvmlError: It can't be told.
        """
        n = self._library
        limit = self._call(n.nvmlDeviceGetPowerManagementLimit, gpu.handle)
        return limit / 1000, self._call(
            n.nvmlDeviceGetPowerManagementDefaultLimit, gpu.handle
        ) / 1000

    def processes(self, gpu: Gpu) -> list[int]:
        """Tell which processes compute on the GPU.

        Raises:
            NvmlError: It can't be told.
        """
        running = self._call(self._library.nvmlDeviceGetComputeRunningProcesses, gpu.handle)
        return [int(process.pid) for process in running]

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        try:
            return function(*arguments)
        except self._library.NVMLError as error:
            kind = type(error).__name__
            raise NvmlError(ERRNO.get(kind, errno.EPROTO), f"NVML: {error}") from None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def find(nvml: Nvml, uuid: str) -> Gpu:
    """Find a GPU by its UUID, which outlives renumbering.

    Raises:
        NvmlError: It is gone.
    """
    for gpu in nvml.gpus():
        if gpu.uuid == uuid:
            return gpu
    raise NvmlError(errno.ENODEV, f"GPU {uuid} is gone")
