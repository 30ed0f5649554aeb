"""What the daemon holds: seats its children on their cores, from outside, and tells how.

    seats = Seats.from_table(table)
    with seats.spawning():
        child = subprocess.Popen(...)
    grants = seats.seat("player", child.pid)

The children import nothing of this room: affinity is set on their process, memory policy is
inherited from the thread that starts them, and the audio thread asks for SCHED_FIFO itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from utterd.sysconfig import realtime
from utterd.sysconfig.config import Config, from_table
from utterd.sysconfig.cpus import format_list
from utterd.sysconfig.placement import place
from utterd.sysconfig.realtime import Grant
from utterd.sysconfig.sysfs import Sysfs

Role = Literal["player", "worker"]


class Seats:
    """Cores and memory node for the daemon's children.

    The profile `desktop` seats nobody: the kernel knows best there, and `seat` grants nothing.

    Args:
        config: The `[tune]` table.
        fs: The machine.

    Raises:
        ConfigError: The configured cores are not online.
    """

    def __init__(self, config: Config, fs: Sysfs | None = None) -> None:
        self._placed = place(fs or Sysfs(), config) if config.profile.name != "desktop" else None

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> "Seats":
        """Use the `[tune]` table of a configuration.

        Raises:
            ConfigError: It makes no sense, or does not fit the machine.
        """
        return cls(from_table(table))

    @contextmanager
    def spawning(self) -> Iterator[Grant | None]:
        """Start children inside this block: their memory comes from the devices' node."""
        if self._placed is None or self._placed.node < 0:
            yield None
            return
        with realtime.spawning_on_node(self._placed.node) as grant:
            yield grant

    def seat(self, role: Role, pid: int) -> list[Grant]:
        """Keep a child on its cores: the player on those for sound, a worker on the others.

        Call it right after the start, so that threads made later inherit it.
        """
        if self._placed is None:
            return []
        cores = self._placed.audio if role == "player" else self._placed.workers
        return [realtime.set_affinity(pid, cores)]

    def describe(self) -> str:
        """Tell in a few words who sits where, for the log."""
        if self._placed is None:
            return "no seats: profile desktop"
        audio, workers = format_list(self._placed.audio), format_list(self._placed.workers)
        node = f", memory of node {self._placed.node}" if self._placed.node >= 0 else ""
        return f"player on CPU {audio}, workers on CPU {workers}{node}"
