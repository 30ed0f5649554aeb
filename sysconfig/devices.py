"""Find the sound cards and GPUs, their PCI functions, interrupts and NUMA nodes: by device."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from utterd.sysconfig.config import Config
from utterd.sysconfig.sysfs import Sysfs

PCI = "/sys/bus/pci/devices"
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NVIDIA = "0x10de"


@dataclass(frozen=True, slots=True)
class Device:
    """A PCI function that speech depends on."""

    kind: str
    """`sound` or `gpu`."""
    name: str
    bdf: str
    """Its PCI address; for a USB card that of the USB controller."""

    @property
    def path(self) -> str:
        """Its folder in sysfs."""
        return f"{PCI}/{self.bdf}"


def sound_cards(fs: Sysfs, wanted: str = "") -> list[Device]:
    """Sound cards on PCI, or behind it on USB, in ALSA's order.

    Args:
        fs: The machine.
        wanted: ALSA id or PCI address of the only card that counts; empty for all.
    """
    cards = []
    for path in fs.match("/sys/class/sound", "card*"):
        if not path.removeprefix("/sys/class/sound/card").isdigit():
            continue
        bdf = _pci_function(fs, fs.real(f"{path}/device"))
        name = fs.get(f"{path}/id")
        if bdf and wanted in ("", name, bdf):
            cards.append(Device("sound", name, bdf))
    if wanted and not cards and fs.exists(f"{PCI}/{wanted}"):
        cards.append(Device("sound", wanted, wanted))
    return cards


def gpus(fs: Sysfs) -> list[Device]:
    """NVIDIA's display controllers (PCI class 03)."""
    return [
        Device("gpu", "NVIDIA", path.rpartition("/")[2])
        for path in fs.match(PCI, "*")
        if fs.get(f"{path}/vendor") == _NVIDIA and fs.get(f"{path}/class").startswith("0x03")
    ]


def devices(fs: Sysfs, config: Config) -> list[Device]:
    """Everything that speech depends on, sound first."""
    return [*sound_cards(fs, config.sound), *gpus(fs)]


def interrupts(fs: Sysfs, device: Device) -> list[int]:
    """Numbers of a device's interrupts today: its messages, else its line."""
    messages = [int(name) for name in fs.names(f"{device.path}/msi_irqs") if name.isdigit()]
    line = fs.number(f"{device.path}/irq")
    return messages or ([line] if line else [])


def node(fs: Sysfs, device: Device) -> int:
    """NUMA node of a device; -1 is normal and means no preference."""
    found = fs.number(f"{device.path}/numa_node")
    return -1 if found is None else found


def port(fs: Sysfs, device: Device) -> str:
    """Folder of the PCI port above a device; empty if it hangs on the root bus."""
    parent = fs.real(device.path).rpartition("/")[0]
    return parent if _ADDRESS.fullmatch(parent.rpartition("/")[2]) else ""


def _pci_function(fs: Sysfs, path: str) -> str:
    """Climb from a device to the PCI function that carries it."""
    for part in _upwards(path):
        if _ADDRESS.fullmatch(part) and fs.exists(f"{PCI}/{part}"):
            return part
    return ""


def _upwards(path: str) -> Iterator[str]:
    yield from reversed(path.strip("/").split("/"))
