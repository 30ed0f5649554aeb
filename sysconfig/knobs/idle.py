"""Wake-up latency the cores of the voice may show when they idle, without a process to hold it."""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.cpufreq import cores
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target
from utterd.sysconfig.placement import CPU


class Idle(Knob):
    """`pm_qos_resume_latency_us` of a core: `0` is no limit, `n/a` no sleep at all."""

    name = "idle"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Ask for the profile's limit; a stricter one that is already there stays."""
        if not (limit := config.profile.wake_up_us):
            return
        paths = [
            f"{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us"
            for cpu in sorted(cores(machine.fs, config))
        ]
        found = [path for path in paths if machine.fs.exists(path)]
        if not found:
            yield Note(self.name, CPU, Level.UNSUPPORTED, "this kernel takes no limit a core")
        for path in found:
            now = machine.fs.get(path)
            strict = now == "n/a" or (now.isdigit() and 0 < int(now) < limit)
            ours = machine.applied.get(path) == now
            want = now if strict and not ours else str(limit)
            yield Target(self.name, path, want, f"a core is awake within {limit} us")
