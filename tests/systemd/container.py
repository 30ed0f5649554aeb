"""A Debian with a real systemd as its first process, in a container that leaves nothing behind.

Needs systemd-container and mmdebstrap. The root file system is made once and kept in the cache;
every boot writes to memory only. Inside runs a Python script as a service; what it writes to
`/out` comes back.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests import guests, workers

PACKAGES = ("systemd", "dbus", "python3", "libportaudio2", "libespeak-ng1", "libpam-systemd")
TOOLS = {"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap"}
UNIT = """[Unit]
Description=The test
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /test/guest.py
StandardOutput=file:/out/log
StandardError=inherit
ExecStopPost=/usr/bin/systemctl --no-block poweroff
"""


class ContainerError(Exception):
    """The container can't be made or did not run to its end."""


def root(cache: Path) -> Path:
    """Make the root file system, or find the one made before.

    Raises:
        ContainerError: Not root, or a tool or a package can't be had.
    """
    if os.geteuid() != 0:
        raise ContainerError("a container needs root: run this test as root")
    missing = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    if missing:
        raise ContainerError(f"apt-get install {' '.join(missing)}: this test can't run without")
    folder = cache / f"root-{'-'.join(PACKAGES)}"
    with workers.alone(folder):
        if not folder.exists():
            _make(folder)
    return folder


def _make(folder: Path) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = ["nice", "-n", "19", "mmdebstrap", "--quiet", "--variant=minbase"]
    command += [f"--include={','.join(PACKAGES)}", "bookworm", str(partial)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise ContainerError(f"mmdebstrap failed: {done.stderr[-2000:]}")
    partial.rename(folder)


def boot(
    root_folder: Path, work: Path, script: Path, shown: Mapping[Path, str], lent: Mapping[Path, str]
) -> str:
    """Boot, run the script, power off; return what it printed.

    Args:
        root_folder: From `root`.
        work: An empty folder.
        script: Python for the container's own interpreter.
        shown: Files and folders to show read-only, and where.
        lent: Folders that the container may change, and where.

    Raises:
        ContainerError: It did not come to its end.
    """
    out = work / "out"
    out.mkdir()
    unit = work / "guest.service"
    unit.write_text(UNIT)
    shown = {
        script: "/test/guest.py",
        Path(guests.__file__): "/test/tests/guests.py",
        unit: "/etc/systemd/system/guest.service",
        **shown,
    }
    nspawn = [
        *("systemd-nspawn", "--quiet", "--directory", str(root_folder), "--register=no"),
        *("--keep-unit", "--volatile=overlay", "--console=pipe", "--private-network"),
        *(f"--bind-ro={path}:{at}" for path, at in shown.items()),
        *(f"--bind={path}:{at}" for path, at in {out: "/out", **lent}.items()),
        *("--boot", "systemd.wants=guest.service"),
    ]
    # nspawn keeps its own books under /run; they are to end with it.
    command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs t /run && exec "$@"', "sh", *nspawn]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        console = process.communicate(timeout=600)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        process.kill()
        console = process.communicate()[0].decode("utf-8", "replace")
        raise ContainerError(f"still running after 600 s:\n{_log(out)}\n{console}") from None
    if process.returncode:
        raise ContainerError(f"nspawn said {process.returncode}: {console[-2000:]}")
    return _log(out)


def _log(out: Path) -> str:
    log = out / "log"
    return log.read_text("utf-8", "replace") if log.exists() else ""
