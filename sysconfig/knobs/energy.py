"""Energy preference of intel_pstate and amd-pstate.

Comes before the governor: under governor `performance` both drivers take no other preference
(EBUSY), so undoing in reverse puts the governor back first and the preference second.
"""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.cpufreq import policies
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target


class Energy(Knob):
    """`energy_performance_preference`."""

    name = "energy"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Ask for the profile's preference where the driver knows it."""
        if not (want := config.profile.energy):
            return
        found = [
            policy
            for policy in policies(machine.fs, config)
            if machine.fs.exists(f"{policy}/energy_performance_preference")
        ]
        if not found:
            text = "the CPU frequency driver takes no energy preference"
            yield Note(self.name, "/sys/devices/system/cpu/cpufreq", Level.UNSUPPORTED, text)
        for policy in found:
            path = f"{policy}/energy_performance_preference"
            choices = machine.fs.get(f"{policy}/energy_performance_available_preferences").split()
            if want not in choices:
                text = f"the driver knows only {', '.join(choices) or 'nothing'}, not {want}"
                yield Note(self.name, path, Level.UNSUPPORTED, text)
            elif not self._fast_enough(machine, policy, want):
                yield Target(self.name, path, want, "the clock rises in time for the first chunk")

    @staticmethod
    def _fast_enough(machine: Machine, policy: str, want: str) -> bool:
        """Tell whether the governor already asks for more than a preference could."""
        governor = machine.fs.get(f"{policy}/scaling_governor")
        return governor == "performance" and want != "performance"
