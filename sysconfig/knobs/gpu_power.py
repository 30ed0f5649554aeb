"""Power limit and throttling of the GPU: read and reported, never set."""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target
from utterd.sysconfig.nvml import Gpu, NvmlError


class GpuPower(Knob):
    """Advice only."""

    name = "gpu_power"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Report a lowered limit, and whatever holds the clocks down now."""
        if not config.profile.gpu_persistence:
            return
        try:
            for gpu in machine.nvml.gpus():
                yield from self._one(machine, gpu)
        except NvmlError as error:
            yield Note(self.name, "nvml:", Level.UNSUPPORTED, str(error.strerror))

    def _one(self, machine: Machine, gpu: Gpu) -> Iterator[Note]:
        path = f"nvml:{gpu.uuid}/power"
        try:
            limit, default = machine.nvml.power_w(gpu)
            _, reasons = machine.nvml.held_back(gpu)
        except NvmlError as error:
            yield Note(self.name, path, Level.UNSUPPORTED, str(error.strerror))
            return
        if limit < default:
            text = f"limited to {limit:.0f} W, the board allows {default:.0f} W"
            yield Note(self.name, path, Level.ADVICE, text)
        if reasons:
            text = f"held back by {', '.join(reasons)}"
            yield Note(self.name, path, Level.ADVICE, text)
