"""CPU frequency policies: which of them hold cores of the voice."""

from utterd.sysconfig.config import Config
from utterd.sysconfig.placement import CPU, place
from utterd.sysconfig.sysfs import Sysfs


def cores(fs: Sysfs, config: Config) -> frozenset[int]:
    """Cores that governor, energy preference and wake-up latency are for.

    Raises:
        ConfigError: As for `place`.
    """
    placed = place(fs, config)
    return placed.online if config.profile.all_cores else placed.voice


def policies(fs: Sysfs, config: Config) -> list[str]:
    """Folders of the policies with at least one such core, online.

    Raises:
        ConfigError: As for `place`.
    """
    wanted = cores(fs, config)
    found = fs.match(f"{CPU}/cpufreq", "policy*")
    return [path for path in found if wanted & _numbers(fs.get(f"{path}/affected_cpus"))]


def _numbers(text: str) -> set[int]:
    return {int(word) for word in text.split() if word.isdigit()}
