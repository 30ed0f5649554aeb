"""What a daemon's processes hold of the machine."""

from pathlib import Path
from typing import NamedTuple

import psutil

from tests.daemon_process import DaemonProcess

MODULES = {"player": "utterd.audio.main", "worker": "utterd.engine.worker"}


class Holding(NamedTuple):
    """Of one process."""

    pid: int
    rss_bytes: int
    descriptors: int
    threads: int
    cpu_s: float
    """Used since its start."""
    shared: tuple[str, ...]
    """Names in /dev/shm that it has mapped."""


def holdings(daemon: DaemonProcess) -> dict[str, Holding]:
    """What the daemon, its player and its one worker hold now, by name."""
    processes = {"daemon": psutil.Process(daemon.process.pid)}
    processes |= {name: daemon.child(module) for name, module in MODULES.items()}
    return {name: _hold(process) for name, process in processes.items()}


def _hold(process: psutil.Process) -> Holding:
    with process.oneshot():
        cpu = process.cpu_times()
        rss, threads = process.memory_info().rss, process.num_threads()
    mapped = {line.rsplit(maxsplit=1)[-1] for line in _maps(process.pid).splitlines()}
    shared = tuple(sorted(name for name in mapped if name.startswith("/dev/shm/")))  # noqa: S108
    used = cpu.user + cpu.system
    return Holding(process.pid, rss, process.num_fds(), threads, used, shared)


def _maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")


def leaks(before: dict[str, Holding], after: dict[str, Holding]) -> list[str]:
    """Processes that were replaced, and what grew in number."""
    found = []
    for name, then in before.items():
        now = after[name]
        if now.pid != then.pid:
            found.append(f"the {name} {then.pid} was replaced by {now.pid}")
        if now.descriptors > then.descriptors:
            found.append(f"the {name} had {then.descriptors} descriptors, has {now.descriptors}")
        if now.threads > then.threads:
            found.append(f"the {name} had {then.threads} threads, has {now.threads}")
        found += [f"the {name} holds {place}" for place in now.shared]
    return found
