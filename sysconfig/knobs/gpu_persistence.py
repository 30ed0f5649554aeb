"""Keep the NVIDIA driver loaded: loading costs seconds and forgets locked clocks."""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target
from utterd.sysconfig.nvml import Gpu, NvmlError, find


class GpuPersistence(Knob):
    """Persistence mode, by NVML."""

    name = "gpu_persistence"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Ask for it on every GPU."""
        if not config.profile.gpu_persistence:
            return
        try:
            for gpu in machine.nvml.gpus():
                reason = f"{gpu.name} is ready at once"
                yield Target(self.name, f"nvml:{gpu.uuid}/persistence", "on", reason)
        except NvmlError as error:
            yield Note(self.name, "nvml:", Level.UNSUPPORTED, str(error.strerror))

    def get(self, machine: Machine, path: str) -> str:
        """Ask the driver."""
        return "on" if machine.nvml.persistence(self._gpu(machine, path)) else "off"

    def set(self, machine: Machine, path: str, value: str) -> None:
        """Tell the driver."""
        machine.nvml.set_persistence(self._gpu(machine, path), on=value == "on")

    @staticmethod
    def _gpu(machine: Machine, path: str) -> Gpu:
        return find(machine.nvml, path.removeprefix("nvml:").partition("/")[0])
