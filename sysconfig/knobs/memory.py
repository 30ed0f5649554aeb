"""Transparent huge pages and swapping: advice, since they belong to the whole machine."""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target

_HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
_SWAPPINESS = "/proc/sys/vm/swappiness"
SWAPPY = 60


class Memory(Knob):
    """Advice only."""

    name = "memory"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Report what can stall a thread for milliseconds."""
        if not config.profile.interrupts:
            return
        if "[always]" in machine.fs.get(_HUGE):
            text = f"always: compaction can stall a thread; echo madvise > {_HUGE}"
            yield Note(self.name, _HUGE, Level.ADVICE, text)
        swappiness = machine.fs.number(_SWAPPINESS)
        swaps = len(machine.fs.get("/proc/swaps").splitlines()) > 1
        if swaps and swappiness is not None and swappiness >= SWAPPY:
            text = f"{swappiness} with swap: voices may be paged out; sysctl vm.swappiness=10"
            yield Note(self.name, _SWAPPINESS, Level.ADVICE, text)
