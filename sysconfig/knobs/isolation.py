"""Keep everyone else off the core that sound runs on, without a kernel command line.

Three doors lead to a core: services and users (the cpuset of their slice), the kernel's unbound
work queues, and interrupts that have no place yet. utterd runs in a slice of its own.
"""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.cpus import format_list, format_mask, parse_list, parse_mask
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target
from utterd.sysconfig.placement import place

WORK_QUEUES = "/sys/devices/virtual/workqueue/cpumask"
NEW_INTERRUPTS = "/proc/irq/default_smp_affinity"
SLICES = ("system.slice", "user.slice", "machine.slice")


class Isolation(Knob):
    """Masks and cpusets without the audio core."""

    name = "isolation"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Ask for the other cores at each door, if there are enough cores."""
        if not config.profile.isolate:
            return
        placed = place(machine.fs, config)
        if not placed.isolated:
            text = f"{len(placed.online)} cores are too few to keep one for sound alone"
            yield Note(self.name, "", Level.UNSUPPORTED, text)
            return
        audio = format_list(placed.audio)
        for path, who in ((WORK_QUEUES, "kernel work"), (NEW_INTERRUPTS, "new interrupts")):
            if machine.fs.exists(path):
                mask = format_mask(placed.others)
                yield Target(self.name, path, mask, f"{who} stays off CPU {audio}")
        yield from self._slices(machine, audio, format_list(placed.others))

    def _slices(self, machine: Machine, audio: str, others: str) -> Iterator[Target | Note]:
        paths = [f"/sys/fs/cgroup/{name}/cpuset.cpus" for name in SLICES]
        found = [path for path in paths if machine.fs.exists(path)]
        for path in found:
            yield Target(self.name, path, others, f"other services stay off CPU {audio}")
        if not found:
            text = (
                f"no cpuset for the slices; add AllowedCPUs={others} to system.slice and user.slice"
            )
            yield Note(self.name, "/sys/fs/cgroup", Level.ADVICE, text)

    def get(self, machine: Machine, path: str) -> str:
        """Read a mask or a list."""
        value = machine.fs.read(path)
        if path.endswith("cpuset.cpus"):
            return format_list(parse_list(value))
        return format_mask(parse_mask(value))
