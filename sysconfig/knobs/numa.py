"""NUMA: say where the devices are. Memory policy is the processes' own (`realtime`)."""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.cpus import format_list
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target
from utterd.sysconfig.placement import nodes_with_memory, place

_BALANCING = "/proc/sys/kernel/numa_balancing"


class Numa(Knob):
    """Advice only, and nothing at all on a machine with one node."""

    name = "numa"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Report the node, and pages that the kernel moves about."""
        if not config.profile.interrupts or len(nodes_with_memory(machine.fs)) < 2:
            return
        placed = place(machine.fs, config)
        where = f"node {placed.node}" if placed.node >= 0 else "no node: the devices have none"
        text = f"speech prefers {where}, cores {format_list(placed.voice)}"
        yield Note(self.name, "/sys/devices/system/node", Level.INFO, text)
        if machine.fs.get(_BALANCING) not in ("", "0"):
            text = (
                "the kernel moves pages under load; if it stutters: sysctl kernel.numa_balancing=0"
            )
            yield Note(self.name, _BALANCING, Level.ADVICE, text)
