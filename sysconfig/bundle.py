"""The support bundle: findings and the machine, without names of people or places, or any text.

Only files of a fixed list go in; user, home, host and addresses are replaced in all of them.
"""

import gzip
import importlib.metadata
import io
import json
import os
import platform
import re
import socket
import tarfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from utterd.sysconfig.check import Finding
from utterd.sysconfig.checks.rights import user
from utterd.sysconfig.config import Config
from utterd.sysconfig.sysfs import Sysfs

FILES = (
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/interrupts",
    "/proc/loadavg",
    "/proc/swaps",
    "/proc/asound/cards",
    "/proc/asound/pcm",
    "/proc/asound/version",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/node/has_memory",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/run/utterd-tune/journal.jsonl",
    "/run/utterd-tune/latency.json",
)
_PRIVATE = re.compile(
    r"\b(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}|[\w.+-]+@[\w-]+\.[\w.]+)\b"
)


def write(path: Path, findings: Iterable[Finding], fs: Sysfs, config: Config) -> None:
    """Write a gzipped tar; the file is for its owner alone."""
    parts = {name.strip("/").replace("/", "_"): fs.get(name) for name in FILES}
    parts["findings.json"] = json.dumps([asdict(finding) for finding in findings], indent=1)
    parts["tune.json"] = json.dumps(
        {"profile": config.profile.name, "cores": sorted(config.cores), "sound": config.sound}
    )
    parts["system.json"] = json.dumps(
        {
            "kernel": platform.release(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "packages": sorted(
                f"{dist.name} {dist.version}" for dist in importlib.metadata.distributions()
            ),
        }
    )
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, text in sorted(parts.items()):
            body = scrub(text).encode()
            entry = tarfile.TarInfo(f"utterd-doctor/{name}")
            entry.size, entry.mode = len(body), 0o600
            tar.addfile(entry, io.BytesIO(body))
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(gzip.compress(data.getvalue(), mtime=0))


def scrub(text: str) -> str:
    """Replace home folders, user, host, addresses and mail addresses."""
    text = re.sub(r"/home/[^/\s\"',;]+", "~", text.replace(str(Path.home()), "~"))
    for name, word in ((user(), "USER"), (socket.gethostname(), "HOST")):
        if len(name) > 1 and name != "root":
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", word, text)
    return _PRIVATE.sub("ADDRESS", text)
