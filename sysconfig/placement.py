"""Choose cores: which are the voice's, which of them is for sound alone, and on which NUMA node."""

from dataclasses import dataclass

from utterd.sysconfig.config import Config, ConfigError
from utterd.sysconfig.cpus import format_list, parse_list
from utterd.sysconfig.devices import devices, node
from utterd.sysconfig.sysfs import ABSENT, Sysfs

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
VOICE_CORES = 4
"""Small voices gain nothing from more threads than this."""
ENOUGH_TO_ISOLATE = 4


@dataclass(frozen=True, slots=True)
class Placement:
    """Who runs where. Sets of CPU numbers."""

    online: frozenset[int]
    voice: frozenset[int]
    """Cores that speech runs on: `audio` and `workers` together."""
    audio: frozenset[int]
    """Where the player's audio thread runs."""
    workers: frozenset[int]
    isolated: bool
    """Whether `audio` is for sound alone."""
    node: int
    """NUMA node to prefer for memory, -1 for none."""

    @property
    def others(self) -> frozenset[int]:
        """Cores left to everyone else."""
        return self.online - self.audio if self.isolated else self.online


def place(fs: Sysfs, config: Config) -> Placement:
    """Choose, by reading only.

    Raises:
        ConfigError: The configured cores are not online.
    """
    online = _online(fs)
    at = _node(fs, config)
    near = online & parse_list(fs.get(f"{NODE}/node{at}/cpulist")) if at >= 0 else online
    if config.cores:
        if missing := config.cores - online:
            text = f"[tune] cores: {format_list(missing)} not online; {format_list(online)} are"
            raise ConfigError(text)
        voice = config.cores
    else:
        voice = frozenset(_fastest_first(fs, near or online)[:VOICE_CORES])
    audio = _whole_core(fs, max(voice)) & voice
    isolated = config.profile.isolate and len(online) >= ENOUGH_TO_ISOLATE and bool(voice - audio)
    if not isolated:
        return Placement(online, voice, voice, voice, isolated=False, node=at)
    return Placement(online, voice, audio, voice - audio, isolated=True, node=at)


def nodes_with_memory(fs: Sysfs) -> frozenset[int]:
    """NUMA nodes that hold memory (some hold only CPUs)."""
    return parse_list(fs.get(f"{NODE}/has_memory"))


def _online(fs: Sysfs) -> frozenset[int]:
    try:
        return parse_list(fs.read(f"{CPU}/online"))
    except OSError as error:
        if error.errno not in ABSENT:
            raise
        raise ConfigError(f"{fs.root} is no machine: it has no {CPU}/online") from None


def _node(fs: Sysfs, config: Config) -> int:
    """Node of the first device that has one; -1 on a machine with a single node."""
    memory = nodes_with_memory(fs)
    if len(memory) < 2:
        return -1
    found = (node(fs, device) for device in devices(fs, config))
    return next((at for at in found if at in memory), -1)


def _fastest_first(fs: Sysfs, cpus: frozenset[int]) -> list[int]:
    """Order by highest clock, then from the last down: the first CPU serves everyone."""
    speed = {cpu: fs.number(f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq") or 0 for cpu in cpus}
    return sorted(cpus, key=lambda cpu: (-speed[cpu], -cpu))


def _whole_core(fs: Sysfs, cpu: int) -> frozenset[int]:
    """A CPU and its hyperthread siblings."""
    return parse_list(fs.get(f"{CPU}/cpu{cpu}/topology/thread_siblings_list")) | {cpu}
