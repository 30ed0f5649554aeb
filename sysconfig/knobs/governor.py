"""CPU governor of the policies that hold the cores of the voice."""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.cpufreq import policies
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target


class Governor(Knob):
    """`scaling_governor`. An offline CPU answers EBUSY, an unknown name EINVAL."""

    name = "governor"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Ask for the profile's governor where the driver offers it."""
        if not (want := config.profile.governor):
            return
        found = policies(machine.fs, config)
        if not found:
            text = "no CPU frequency driver (usual in virtual machines)"
            yield Note(self.name, "/sys/devices/system/cpu/cpufreq", Level.UNSUPPORTED, text)
        for policy in found:
            path = f"{policy}/scaling_governor"
            offered = machine.fs.get(f"{policy}/scaling_available_governors").split()
            if want in offered:
                yield Target(self.name, path, want, "full clock at once when text arrives")
            else:
                text = f"the driver offers only {', '.join(offered) or 'nothing'}, not {want}"
                yield Note(self.name, path, Level.UNSUPPORTED, text)
