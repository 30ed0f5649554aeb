"""Socket buffers: raised where they are below the kernel's default, never lowered."""

from collections.abc import Iterator

from utterd.sysconfig.config import Config
from utterd.sysconfig.knob import Knob, Machine, Note, Target

ENOUGH = 212_992
"""Bytes; the kernel's own default, and plenty for text and events."""


class Network(Knob):
    """`net.core.wmem_max` and `rmem_max`."""

    name = "network"

    def targets(self, machine: Machine, config: Config) -> Iterator[Target | Note]:
        """Ask for the default where less is allowed."""
        if not config.profile.buffers:
            return
        for which in ("wmem_max", "rmem_max"):
            path = f"/proc/sys/net/core/{which}"
            now = machine.fs.number(path)
            ours = machine.applied.get(path) == str(now)
            if now is not None and (now < ENOUGH or ours):
                yield Target(self.name, path, str(ENOUGH), "a slow subscriber loses no events")
