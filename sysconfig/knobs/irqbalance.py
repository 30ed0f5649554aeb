"""Tell irqbalance to leave the interrupts of our devices alone, in its own words."""

import errno
from collections.abc import Iterator

from utterd.sysconfig import irqbalance
from utterd.sysconfig.config import Config
from utterd.sysconfig.devices import devices, interrupts
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target

_PREFIX = "irqbalance:"


class Irqbalance(Knob):
    """One setting an interrupt, so that bans of the admin's stay when ours are lifted."""

    name = "irqbalance"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Ask for a ban of every interrupt we place."""
        if not config.profile.interrupts or not irqbalance.running(machine.fs):
            return
        numbers = [
            n for device in devices(machine.fs, config) for n in interrupts(machine.fs, device)
        ]
        if not irqbalance.sockets(machine.fs):
            text = "runs without its socket and will move our interrupts back; start it with " + (
                " ".join(f"--banirq={number}" for number in numbers)
            )
            yield Note(self.name, "/run/irqbalance", Level.CONFLICT, text)
            return
        for number in sorted(set(numbers)):
            reason = "irqbalance moves it back within seconds otherwise"
            yield Target(self.name, f"{_PREFIX}{number}", "banned", reason)

    def get(self, machine: Machine, path: str) -> str:
        """Ask irqbalance."""
        return "banned" if self._number(path) in irqbalance.banned(machine.fs) else "free"

    def set(self, machine: Machine, path: str, value: str) -> None:
        """Add one to its list, or take one away; the socket only takes whole lists."""
        number = self._number(path)
        others = irqbalance.banned(machine.fs) - {number}
        irqbalance.ban(machine.fs, others | {number} if value == "banned" else others)
        if self.get(machine, path) != value:
            raise OSError(errno.EACCES, "irqbalance did not take the list; it obeys root only")

    @staticmethod
    def _number(path: str) -> int:
        return int(path.removeprefix(_PREFIX))
