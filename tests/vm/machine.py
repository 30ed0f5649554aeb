"""A real Debian kernel under QEMU's software emulation, with what servers and cars have.

Two NUMA nodes, four cores with cpufreq governors (1 to 3 GHz) and a deep idle state, an NVMe disk
with managed interrupts on node 1, PCIe links, and a sound card. Inside runs this machine's own
Python with the tuner, and a script of cases that prints a JSON line for each.

Needs: qemu-system-x86 busybox-static acpica-tools kmod cpio irqbalance, and apt for the kernel.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from tests import workers

HERE = Path(__file__).parent
ROOM = HERE.parents[1] / "sysconfig"
BESIDE = (HERE.parent / "guests.py", HERE.parent / "killing.py")
"""What the guest imports besides the tuner."""
MODULES = ("virtio_pci", "acpi_cpufreq", "cpufreq_powersave", "nvme", "snd_intel8x0")
PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "iasl": "acpica-tools",
    "modprobe": "kmod",
    "cpio": "cpio",
    "busybox": "busybox-static",
    "irqbalance": "irqbalance",
}
SKIPPED = ("test", "idlelib", "site-packages", "dist-packages", "ensurepip", "lib2to3", "tkinter")
TIMEOUT_S = 900

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tmpfs t /run
mount -t cgroup2 c /sys/fs/cgroup
for m in {modules}; do modprobe $m; done
PYTHONPATH=/lib/utterd {python} /test/guest.py
echo "GUEST-END $?"
poweroff -f
"""


class MachineError(Exception):
    """The virtual machine can't be built or did not run to its end."""


def require_packages() -> None:
    """Check that every program is there.

    Raises:
        MachineError: Some are not; names the packages.
    """
    search = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [package for name, package in PACKAGES.items() if not shutil.which(name, path=search)]
    if missing:
        raise MachineError(f"apt-get install {' '.join(missing)}: this test can't run without")


def boot(cache: Path, work: Path, guest: Path) -> str:
    """Boot, run a script inside, and return everything that the serial console showed.

    Args:
        cache: Where the kernel is kept between runs.
        work: An empty folder.
        guest: The Python script.

    Raises:
        MachineError: No kernel, or the machine did not end by itself.
    """
    require_packages()
    kernel, version = _kernel(cache)
    initrd = _initrd(work, kernel, version, guest)
    table = _acpi_table(work)
    disk = work / "disk.img"
    with disk.open("wb") as file:
        file.truncate(16 << 20)
    command = ["nice", *_qemu(kernel / f"boot/vmlinuz-{version}", initrd, table, disk)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        console = (late.stdout or b"").decode("utf-8", "replace")
        raise MachineError(f"still running after {TIMEOUT_S} s:\n{console[-4000:]}") from None
    console = done.stdout.decode("utf-8", "replace")
    if "GUEST-END 0" not in console:
        errors = done.stderr.decode("utf-8", "replace")
        raise MachineError(f"the guest did not end well:\n{console[-4000:]}\n{errors[-2000:]}")
    return console


def _kernel(cache: Path) -> tuple[Path, str]:
    exact = _kernel_package()
    if not exact:
        _run("apt-get", "-qq", "update")
        exact = _kernel_package()
    if not exact:
        raise MachineError(
            "apt knows no linux-image-amd64: this test needs Debian's kernel package"
        )
    version, folder = exact.removeprefix("linux-image-"), cache / exact
    with workers.alone(folder):
        if not folder.exists():
            _unpack(exact, version, folder)
    return folder, version


def _unpack(exact: str, version: str, folder: Path) -> None:
    cache = folder.parent
    _run("apt-get", "-q", "download", exact, cwd=cache)
    package = next(cache.glob(f"{exact}_*.deb"))
    partial = folder.with_name(f"{exact}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    _run("dpkg", "-x", package, partial)
    _run("/sbin/depmod", "-b", partial, version)
    package.unlink()
    partial.rename(folder)


def _kernel_package() -> str:
    """Name of the kernel that linux-image-amd64 stands for; empty if apt knows none."""
    command = ["apt-cache", "depends", "linux-image-amd64"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Depends: (linux-image-\d\S+)", shown)
    return found.group(1) if found else ""


def _initrd(work: Path, kernel: Path, version: str, guest: Path) -> Path:
    root = work / "initrd"
    for name in ("bin", "dev", "proc", "sys", "tmp", "run", "lib/utterd/utterd", "etc"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox
    shutil.copy(busybox, root / "bin/busybox")
    _copy_modules(root, kernel, version)
    python = _copy_python(root)
    _copy_program(root, Path("/usr/sbin/irqbalance"))
    shutil.copytree(ROOM, root / "lib/utterd/utterd/sysconfig", symlinks=True)
    for source, target in ((guest, "guest.py"), *((path, f"tests/{path.name}") for path in BESIDE)):
        (root / "test/tests").mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / "test" / target)
    init = root / "init"
    init.write_text(INIT.format(modules=" ".join(MODULES), python=python))
    init.chmod(0o755)
    names = _run("find", ".", cwd=root)
    packed = subprocess.run(
        ["cpio", "-o", "-H", "newc", "--quiet"],
        input=names.encode(),
        cwd=root,
        capture_output=True,
        check=True,
    )
    image = work / "initrd.gz"
    image.write_bytes(gzip.compress(packed.stdout, 1))
    shutil.rmtree(root)
    return image


def _copy_modules(root: Path, kernel: Path, version: str) -> None:
    files = set()
    for module in MODULES:
        shown = _run("/sbin/modprobe", "-d", kernel, "-S", version, "--show-depends", module)
        files.update(line.split()[1] for line in shown.splitlines() if line.startswith("insmod"))
    base = f"lib/modules/{version}"
    for file in files:
        target = root / base / file.split(f"{base}/", 1)[1]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    for name in ("modules.builtin", "modules.order"):
        shutil.copy(kernel / base / name, root / base / name)
    _run("/sbin/depmod", "-b", root, version)


def _copy_python(root: Path) -> str:
    """Copy this interpreter, its library and what they link to, all at the same paths."""
    python = os.path.realpath(sys.executable)
    library = Path(sysconfig.get_path("stdlib"))
    target = root / str(library).lstrip("/")
    ignore = shutil.ignore_patterns(*SKIPPED, "*.a", "config-*", "*_test*")
    shutil.copytree(library, target, symlinks=True, ignore=ignore)
    _copy_program(root, Path(python), (target / "lib-dynload").glob("*.so"))
    return python


def _copy_program(root: Path, program: Path, more: Iterable[Path] = ()) -> None:
    libraries = {program}
    for line in _run("ldd", program, *more).splitlines():
        if line.endswith(":"):
            continue
        libraries.update(Path(word) for word in line.split() if word.startswith("/"))
    for library in libraries:
        target = root / str(library).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), target)


def _acpi_table(work: Path) -> Path:
    """Describe clocks and idle states of the four cores, which QEMU's own tables leave out."""
    parts = ['DefinitionBlock ("", "SSDT", 2, "UTTERD", "PSTATE", 1) {']
    parts += [f"External(\\_SB.CPUS.C00{n}, DeviceObj)" for n in range(4)]
    for n in range(4):
        parts.append(f"""Scope(\\_SB.CPUS.C00{n}) {{
 Name(_PCT, Package(){{ResourceTemplate(){{Register(SystemIO,16,0,0x0E00)}},
  ResourceTemplate(){{Register(SystemIO,16,0,0x0E04)}}}})
 Name(_PSS, Package(){{Package(){{3000,65000,10,10,0x10,0x10}},
  Package(){{2000,45000,10,10,0x20,0x20}}, Package(){{1000,25000,10,10,0x30,0x30}}}})
 Name(_PPC, 0)
 Name(_PSD, Package(){{Package(){{5,0,{n},0xFC,1}}}})
 Name(_CST, Package(){{2, Package(){{ResourceTemplate(){{Register(FFixedHW,0,0,0)}},1,1,1000}},
  Package(){{ResourceTemplate(){{Register(SystemIO,8,0,0x0E15)}},3,300,100}}}})
}}""")
    source = work / "pstate.dsl"
    source.write_text("\n".join([*parts, "}"]))
    _run("iasl", "-p", work / "pstate", source)
    return work / "pstate.aml"


def _qemu(kernel: Path, initrd: Path, table: Path, disk: Path) -> list[str]:
    memory = [f"memory-backend-ram,size=384M,id=m{n}" for n in (0, 1)]
    return [
        "qemu-system-x86_64",
        *("-M", "q35,accel=tcg", "-cpu", "Haswell-noTSX", "-smp", "4,sockets=2,cores=2"),
        *("-m", "768M", "-object", memory[0], "-object", memory[1]),
        *("-numa", "node,nodeid=0,cpus=0-1,memdev=m0"),
        *("-numa", "node,nodeid=1,cpus=2-3,memdev=m1"),
        *("-numa", "dist,src=0,dst=1,val=21", "-acpitable", f"file={table}"),
        *("-device", "pxb-pcie,id=px,bus_nr=0x80,numa_node=1,bus=pcie.0"),
        *("-device", "pcie-root-port,id=rp,bus=px,chassis=1,x-speed=16,x-width=16"),
        *("-drive", f"if=none,id=d0,file={disk},format=raw"),
        *("-device", "nvme,drive=d0,serial=x,bus=rp"),
        *("-audiodev", "none,id=a", "-device", "AC97,audiodev=a,bus=pcie.0", "-nic", "none"),
        *("-kernel", str(kernel), "-initrd", str(initrd)),
        *("-append", "console=ttyS0 quiet panic=-1", "-no-reboot", "-display", "none"),
        *("-serial", "stdio", "-monitor", "none"),
    ]


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(f"{' '.join(words)} failed: {(done.stderr or done.stdout)[-1000:]}")
    return done.stdout
