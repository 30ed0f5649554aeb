"""PCIe links of the sound card and the GPU, checked against what card and port can do."""

import re
from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.devices import devices, port
from utterd.sysconfig.knob import Knob, Level, Machine, Note, Target
from utterd.sysconfig.sysfs import Sysfs


class Pcie(Knob):
    """Advice only: a narrow link is a matter of slot and seat, not of a register."""

    name = "pcie"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Report links below what both ends can do, and links that sleep."""
        if not config.profile.interrupts:
            return
        for device in devices(machine.fs, config):
            above = port(machine.fs, device)
            for what in ("width", "speed"):
                now = _figure(machine.fs, f"{device.path}/current_link_{what}")
                can = _common(machine.fs, what, device.path, above)
                if now and can and now < can:
                    unit = "lanes" if what == "width" else "GT/s"
                    text = f"{device.name}: link {what} {now:g} of {can:g} {unit}" + (
                        "; GPUs lower it when idle, look again under load"
                        if device.kind == "gpu" and what == "speed"
                        else "; reseat the card or use another slot"
                    )
                    yield Note(self.name, device.path, Level.ADVICE, text)
            if sleeps := [s for s in ("l0s", "l1") if self._sleeps(machine.fs, device.path, s)]:
                text = f"{device.name}: link may sleep ({', '.join(sleeps)}), microseconds to wake"
                yield Note(self.name, f"{device.path}/link", Level.INFO, text)

    @staticmethod
    def _sleeps(fs: Sysfs, path: str, state: str) -> bool:
        return fs.get(f"{path}/link/{state}_aspm") == "1"


def _common(fs: Sysfs, what: str, card: str, above: str) -> float:
    """What both ends can do; 0 if one of them does not say."""
    ends = [card, above] if above else [card]
    return min(_figure(fs, f"{end}/max_link_{what}") for end in ends)


def _figure(fs: Sysfs, path: str) -> float:
    """The number at the head of `8.0 GT/s PCIe` or `16`; 0 where unknown."""
    found = re.match(r"[\d.]+", fs.get(path))
    number = float(found.group()) if found else 0.0
    return 0.0 if number == 255 else number
