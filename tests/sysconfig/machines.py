"""Made-up machines as trees of files, and a file layer that refuses or dies where it is told."""

import errno
import os
from pathlib import Path

from utterd.sysconfig.sysfs import Sysfs

CPU = "sys/devices/system/cpu"


def build(
    root: Path,
    *,
    cores: int = 8,
    nodes: int = 1,
    cpufreq: bool = True,
    energy: bool = True,
    sound: bool = True,
    gpu: bool = True,
    buffers: int = 212_992,
) -> Path:
    """Lay out a machine: by default an eight-core box with a sound card and a GPU."""
    put = _Tree(root)
    put(f"{CPU}/online", f"0-{cores - 1}")
    put("proc/sys/kernel/random/boot_id", "boot-1")
    put("sys/devices/system/node/has_memory", f"0-{nodes - 1}" if nodes > 1 else "0")
    share = cores // nodes
    for node in range(nodes):
        first = node * share
        put(f"sys/devices/system/node/node{node}/cpulist", f"{first}-{first + share - 1}")
    for cpu in range(cores):
        put(f"{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us", "0")
        put(f"{CPU}/cpu{cpu}/topology/thread_siblings_list", str(cpu))
        if cpufreq:
            _policy(put, cpu, energy=energy)
    put("proc/sys/net/core/wmem_max", str(buffers))
    put("proc/sys/net/core/rmem_max", str(buffers))
    put("sys/devices/virtual/workqueue/cpumask", f"{(1 << cores) - 1:x}")
    put("proc/irq/default_smp_affinity", f"{(1 << cores) - 1:x}")
    for name in ("system", "user"):
        put(f"sys/fs/cgroup/{name}.slice/cpuset.cpus", "")
    if sound:
        _sound(put, node=nodes - 1, interrupt=33, everywhere=f"0-{cores - 1}")
    if gpu:
        _gpu(put, node=nodes - 1, interrupts=(40, 41), everywhere=f"0-{cores - 1}")
    return root


class _Tree:
    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def link(self, path: str, target: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(os.path.relpath(self.root / target, file.parent))


def _policy(put: _Tree, cpu: int, *, energy: bool) -> None:
    policy = f"{CPU}/cpufreq/policy{cpu}"
    put(f"{policy}/affected_cpus", str(cpu))
    put(f"{policy}/scaling_governor", "powersave")
    put(f"{policy}/scaling_available_governors", "performance powersave")
    if energy:
        put(f"{policy}/energy_performance_preference", "balance_power")
        choices = "default performance balance_performance balance_power power"
        put(f"{policy}/energy_performance_available_preferences", choices)


def _interrupt(put: _Tree, number: int, actions: str, everywhere: str) -> None:
    put(f"proc/irq/{number}/smp_affinity_list", everywhere)
    put(f"proc/irq/{number}/effective_affinity_list", "0")
    put(f"sys/kernel/irq/{number}/actions", actions)


def _sound(put: _Tree, *, node: int, interrupt: int, everywhere: str) -> None:
    device = "sys/devices/pci0000:00/0000:00:1f.3"
    put(f"{device}/class", "0x040300")
    put(f"{device}/vendor", "0x8086")
    put(f"{device}/irq", str(interrupt))
    put(f"{device}/numa_node", str(node))
    put(f"{device}/sound/card0/id", "PCH")
    put.link(f"{device}/sound/card0/device", device)
    put.link("sys/class/sound/card0", f"{device}/sound/card0")
    put.link("sys/bus/pci/devices/0000:00:1f.3", device)
    _interrupt(put, interrupt, "snd_hda_intel:card0", everywhere)


def _gpu(put: _Tree, *, node: int, interrupts: tuple[int, ...], everywhere: str) -> None:
    port = "sys/devices/pci0000:00/0000:00:01.0"
    device = f"{port}/0000:01:00.0"
    put(f"{device}/class", "0x030000")
    put(f"{device}/vendor", "0x10de")
    put(f"{device}/numa_node", str(node))
    for end, width, speed in ((port, "16", "16.0 GT/s PCIe"), (device, "16", "16.0 GT/s PCIe")):
        for kind in ("current", "max"):
            put(f"{end}/{kind}_link_width", width)
            put(f"{end}/{kind}_link_speed", speed)
    for number in interrupts:
        put(f"{device}/msi_irqs/{number}", "msix")
        _interrupt(put, number, "nvidia", everywhere)
    put.link("sys/bus/pci/devices/0000:00:01.0", port)
    put.link("sys/bus/pci/devices/0000:01:00.0", device)


class FaultySysfs(Sysfs):
    """Refuses writes (or reads) of chosen paths with a chosen errno."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.refuse_writes: dict[str, int] = {}
        self.refuse_reads: dict[str, int] = {}
        self.written: list[tuple[str, str]] = []

    def read(self, path: str) -> str:
        if path in self.refuse_reads:
            code = self.refuse_reads[path]
            raise OSError(code, os.strerror(code), path)
        return super().read(path)

    def write(self, path: str, value: str) -> None:
        if path in self.refuse_writes:
            code = self.refuse_writes[path]
            raise OSError(code, os.strerror(code), path)
        super().write(path, value)
        self.written.append((path, value))


class KernelSysfs(Sysfs):
    """Takes a value whole or not at all, as files of the kernel do, also from a killed process."""

    def write(self, path: str, value: str) -> None:
        handle = os.open(self.at(path), os.O_WRONLY)
        os.write(handle, value.encode().ljust(64))
        os.close(handle)


class PstateSysfs(FaultySysfs):
    """Behaves like amd-pstate and intel_pstate: under governor performance only one preference."""

    def write(self, path: str, value: str) -> None:
        policy, _, name = path.rpartition("/")
        preference = f"{policy}/energy_performance_preference"
        fast = self.get(f"{policy}/scaling_governor") == "performance"
        if path == preference and fast and value != "performance":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        super().write(path, value)
        if name == "scaling_governor" and value == "performance" and self.exists(preference):
            Sysfs.write(self, preference, "performance")


def snapshot(root: Path) -> dict[str, str]:
    """Every file of the tree and its content."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(root)): path.read_text().strip() for path in files}
