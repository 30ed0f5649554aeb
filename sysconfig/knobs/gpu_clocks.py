"""Lock the graphics clocks of the GPU at their rated value, so that the first chunk is no slower.

Memory clocks stay free (locking them was seen to cost 16 %). NVML has no getter for a lock: what
we know is what the journal says we did, and whether the clock holds under load.
"""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target
from utterd.sysconfig.nvml import Gpu, NvmlError, find

LOCKED, FREE = "rated clock", "not by us"


class GpuClocks(Knob):
    """Locked clocks, by NVML; Volta or newer."""

    name = "gpu_clocks"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Ask for the lock on every GPU."""
        if not config.profile.gpu_clocks:
            return
        try:
            for gpu in machine.nvml.gpus():
                reason = f"{gpu.name} does not clock down between sentences"
                yield Target(self.name, f"nvml:{gpu.uuid}/clocks", LOCKED, reason)
        except NvmlError as error:
            yield Note(self.name, "nvml:", Level.UNSUPPORTED, str(error.strerror))

    def get(self, machine: Machine, path: str) -> str:
        """Tell what we did, unless the driver was loaded anew since and forgot it."""
        gpu = self._gpu(machine, path)
        machine.nvml.clocks_mhz(gpu)  # a lost GPU says so here
        kept = machine.applied.get(f"nvml:{gpu.uuid}/persistence") != "on"
        return machine.applied.get(path, FREE) if kept or machine.nvml.persistence(gpu) else FREE

    def set(self, machine: Machine, path: str, value: str) -> None:
        """Lock, or let go."""
        gpu = self._gpu(machine, path)
        if value == LOCKED:
            machine.nvml.lock_clocks(gpu)
        else:
            machine.nvml.unlock_clocks(gpu)

    def pending(self, machine: Machine, target: Target) -> str:
        """Say what keeps the clock from holding; an idle GPU proves nothing."""
        gpu = self._gpu(machine, target.path)
        idle, reasons = machine.nvml.held_back(gpu)
        now, highest = machine.nvml.clocks_mhz(gpu)
        if reasons:
            return f"held at {now} of {highest} MHz by {', '.join(reasons)}"
        return f"idle at {now} MHz; look again under load" if idle and now < highest // 2 else ""

    @staticmethod
    def _gpu(machine: Machine, path: str) -> Gpu:
        return find(machine.nvml, path.removeprefix("nvml:").partition("/")[0])
