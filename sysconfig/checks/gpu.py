"""The GPU: present, answering, free to run at its clock, and driver and libraries that fit."""

import errno
import importlib.metadata
import re
from collections.abc import Iterator

from utterd.sysconfig.check import Finding, Scene, broken, fine, warning
from utterd.sysconfig.devices import gpus as on_bus
from utterd.sysconfig.nvml import Gpu, Nvml, NvmlError

_DISTRIBUTIONS = re.compile(r"nvidia-cuda-runtime(?:-cu(\d+))?|tensorrt-cu(\d+)")


def gpu(scene: Scene) -> Iterator[Finding]:
    """Every GPU on the bus must answer NVML."""
    present, nvml = on_bus(scene.fs), scene.nvml
    if nvml.error is not None:
        if present:
            yield _silent(nvml.error)
        else:
            yield fine("GPU", "none; voices run on the CPU")
        return
    try:
        found = nvml.gpus()
        yield fine("GPU driver", nvml.driver())
    except NvmlError as error:
        yield _silent(error)
        return
    if missing := {device.bdf for device in present} - {one.bus for one in found}:
        text = f"{', '.join(sorted(missing))} does not answer"
        why = "voices fall back to the CPU"
        yield broken("GPU", text, why, "dmesg | grep -i xid; reboot if it fell off the bus")
    for one in found:
        yield from _one(nvml, one)


def _silent(error: NvmlError) -> Finding:
    why = "voices run on the CPU although there is a GPU"
    mend = "load the driver: modprobe nvidia; nvidia-smi"
    if error.errno == errno.ELIBBAD:
        mend = "reboot: the loaded driver is older than its library"
    elif error.errno == errno.ENODEV:
        mend = "dmesg | grep -i xid; reboot if it fell off the bus"
    elif "nvidia-ml-py" in str(error.strerror):
        mend = "pip install nvidia-ml-py"
    return broken("GPU", str(error.strerror), why, mend)


def _one(nvml: Nvml, one: Gpu) -> Iterator[Finding]:
    try:
        processes = nvml.processes(one)
        idle, reasons = nvml.held_back(one)
        now, highest = nvml.clocks_mhz(one)
        used = f"used by {len(processes)} processes" if processes else "used by no process"
        yield fine("GPU", f"{one.name} at {one.bus}, {used}, {now} of {highest} MHz")
        if reasons and not idle:
            text = f"{one.name} is held back by {', '.join(reasons)}"
            why = "the first chunk comes later under load"
            yield warning("GPU clocks", text, why, "nvidia-smi -q -d PERFORMANCE; check cooling")
    except NvmlError as error:
        if error.errno == errno.ENOTSUP:
            yield fine("GPU", f"{one.name} at {one.bus}; it tells no more")
        else:
            yield _silent(error)


def libraries(scene: Scene) -> Iterator[Finding]:
    """CUDA libraries newer than the driver don't start; two ONNX Runtimes fight."""
    installed = {
        (dist.name or "").lower(): dist.version for dist in importlib.metadata.distributions()
    }
    if {"onnxruntime", "onnxruntime-gpu"} <= installed.keys():
        why = "they overwrite each other: the GPU build may be shadowed by the CPU's"
        mend = "pip uninstall onnxruntime onnxruntime-gpu; pip install onnxruntime-gpu"
        yield warning("libraries", "onnxruntime and onnxruntime-gpu", why, mend)
    driver = _driver_cuda(scene.nvml)
    for name, version in installed.items():
        match = _DISTRIBUTIONS.fullmatch(name)
        if not match or not driver:
            continue
        major = int(match.group(1) or match.group(2) or version.partition(".")[0])
        if major > driver:
            text = f"{name} {version} needs CUDA {major}, the driver knows CUDA {driver}"
            why = "the GPU can't be used"
            yield broken("libraries", text, why, "update the driver, or install older libraries")


def _driver_cuda(nvml: Nvml) -> int:
    """Highest CUDA major version that the driver runs; 0 without one."""
    try:
        return nvml.cuda_major() if nvml.error is None else 0
    except NvmlError:
        return 0
