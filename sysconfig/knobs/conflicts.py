"""Other tools that turn the same settings: named, not fought."""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target

RIVALS = {
    "tuned": "governor, energy preference and interrupts",
    "power-profiles-daemon": "energy preference",
    "tlp": "governor and energy preference",
    "auto-cpufreq": "governor",
    "cpupower": "governor, at boot",
    "gamemoded": "governor, while a game runs",
}


class Conflicts(Knob):
    """Units that are active (systemd leaves a mark of each) and processes that run."""

    name = "conflicts"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Report each rival that is there."""
        if not (config.profile.governor or config.profile.energy):
            return
        fs = machine.fs
        running = {fs.get(f"/proc/{pid}/comm") for pid in fs.names("/proc") if pid.isdigit()}
        for rival, what in RIVALS.items():
            mark = f"/run/systemd/units/invocation:{rival}.service"
            # The kernel cuts the name of a process at 15 characters.
            if rival[:15] in running or fs.link(mark):
                text = f"also sets {what}; keep one of the two: systemctl disable --now {rival}"
                yield Note(self.name, rival, Level.CONFLICT, text)
