"""What the machine is for: four profiles and the few things only its owner can say."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from utterd.sysconfig.cpus import parse_list

DEFAULT_FILE = Path("/etc/utterd/utterd.toml")


class ConfigError(Exception):
    """The configuration can't be used; the text says where and what to write instead."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How far tuning goes. What each costs in power stands in the room's README."""

    name: str
    governor: str = ""
    """CPU governor for the cores of the voice; empty leaves it."""
    energy: str = ""
    """Energy preference for the same cores; empty leaves it."""
    all_cores: bool = False
    """Governor, energy and wake-up latency for every core, not for those of the voice alone."""
    wake_up_us: int = 0
    """Longest time a core of the voice may take to leave its idle state; 0 leaves it."""
    interrupts: bool = False
    """Put the interrupts of the sound card and the GPU on the cores that serve them."""
    isolate: bool = False
    """Keep everyone else off one core, where there are at least four."""
    buffers: bool = False
    """Raise socket buffers that are below the kernel's own default."""
    gpu_persistence: bool = False
    gpu_clocks: bool = False
    """Lock the GPU's graphics clocks at their rated value."""


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("desktop"),
        Profile(
            "kiosk",
            energy="balance_performance",
            wake_up_us=100,
            interrupts=True,
            buffers=True,
            gpu_persistence=True,
        ),
        Profile(
            "car",
            governor="performance",
            energy="performance",
            wake_up_us=20,
            interrupts=True,
            isolate=True,
            buffers=True,
            gpu_persistence=True,
            gpu_clocks=True,
        ),
        Profile(
            "benchmark",
            governor="performance",
            energy="performance",
            all_cores=True,
            wake_up_us=2,
            interrupts=True,
            isolate=True,
            buffers=True,
            gpu_persistence=True,
            gpu_clocks=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Config:
    """The `[tune]` table of the configuration."""

    profile: Profile = PROFILES["desktop"]
    cores: frozenset[int] = frozenset()
    """Cores of the voice; empty lets `placement` choose."""
    sound: str = ""
    """ALSA id (`PCH`) or PCI address of the card that speaks; empty means every card."""


def load(path: Path | None, profile: str = "") -> Config:
    """Read `[tune]`; a missing default file means a desktop.

    Args:
        path: The file; None for the default one, which may be missing.
        profile: A profile that counts more than the file's.

    Raises:
        ConfigError: Unreadable, unknown keys, or values that make no sense.
    """
    return from_table(_table(path), profile)


def from_table(table: Mapping[str, object], profile: str = "") -> Config:
    """Check a `[tune]` table.

    Args:
        table: As read from the configuration.
        profile: A profile that counts more than the table's.

    Raises:
        ConfigError: Unknown keys, or values that make no sense.
    """
    if unknown := sorted(set(table) - {"profile", "cores", "sound"}):
        raise ConfigError(f"[tune] knows no '{unknown[0]}'; it knows profile, cores and sound")
    name, cores, sound = (table.get(key, "") for key in ("profile", "cores", "sound"))
    if not all(isinstance(value, str) for value in (name, cores, sound)):
        raise ConfigError('[tune] takes text for every key, such as cores = "2-3"')
    name = profile or name or "desktop"
    if name not in PROFILES:
        raise ConfigError(f"there is no profile '{name}'; choose one of {', '.join(PROFILES)}")
    try:
        return Config(PROFILES[name], parse_list(str(cores)), str(sound))
    except ValueError as error:
        raise ConfigError(f"[tune] cores: {error}") from None


def _table(path: Path | None) -> dict[str, object]:
    file = path or DEFAULT_FILE
    if path is None and not file.exists():
        return {}
    try:
        table = tomllib.loads(file.read_text()).get("tune", {})
    except OSError as error:
        raise ConfigError(f"can't read {file}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is no TOML: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: [tune] must be a table")
    return table
