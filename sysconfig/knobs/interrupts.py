"""Affinity of the sound card's and the GPU's own interrupts."""

import errno
from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.cpus import format_list, parse_list
from utterd.sysconfig.devices import Device, devices, interrupts
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Outcome, Target
from utterd.sysconfig.placement import place

_TRANSIENT = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.EINVAL, errno.ERANGE, errno.ENOMEM, errno.ENOSPC}
)
_REFUSED = frozenset({errno.EPERM, errno.EACCES, errno.EROFS})


class Interrupts(Knob):
    """`/proc/irq/N/smp_affinity_list`. EIO is a managed interrupt: nobody can move it."""

    name = "interrupts"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Sound's interrupts to the audio cores, the GPU's to the workers'."""
        if not config.profile.interrupts:
            return
        placed = place(machine.fs, config)
        found = devices(machine.fs, config)
        if not found:
            text = "no sound card or GPU on PCI or USB: no interrupts to place"
            yield Note(self.name, "/sys/bus/pci/devices", Level.UNSUPPORTED, text)
        taken: set[int] = set()
        for device in found:
            cores = placed.audio if device.kind == "sound" else placed.workers
            for number in sorted(set(interrupts(machine.fs, device)) - taken):
                taken.add(number)
                yield self._one(machine, device, number, format_list(cores))

    def _one(self, machine: Machine, device: Device, number: int, cores: str) -> Target | Note:
        path = f"/proc/irq/{number}/smp_affinity_list"
        actions = machine.fs.get(f"/sys/kernel/irq/{number}/actions").split(",")
        if not machine.fs.exists(path):
            text = f"{device.bdf} has not asked for its interrupt"
            return Note(self.name, path, Level.UNSUPPORTED, text)
        if len(actions) > 1:
            text = f"{device.name} shares it with {', '.join(actions[1:])}: left where it is"
            return Note(self.name, path, Level.ADVICE, text)
        return Target(self.name, path, cores, f"{device.kind} {device.name} ({device.bdf})")

    def canonical(self, value: str) -> str:
        """Put a list of CPUs into the kernel's form."""
        return format_list(parse_list(value))

    def pending(self, machine: Machine, target: Target) -> str:
        """Compare with the effective affinity, which follows at the next interrupt."""
        path = target.path.replace("smp_affinity_list", "effective_affinity_list")
        text = machine.fs.get(path)
        if not text or parse_list(text) <= parse_list(target.want):
            return ""
        return f"still served by CPU {text} until the next interrupt"

    def outcome(self, error: OSError) -> Outcome:
        """Split errors the way irqbalance does: what may pass later, what never will."""
        if error.errno in _TRANSIENT:
            return Outcome.PENDING
        if error.errno in _REFUSED:
            return Outcome.REFUSED
        return Outcome.UNSUPPORTED if error.errno == errno.ENOENT else Outcome.UNCHANGEABLE
