"""Files: disk space, versions of libraries."""

import importlib.metadata
import re
import shutil
from collections.abc import Iterator

from utterd.sysconfig.check import Finding, Scene, broken, fine, warning

LOW, FULL = 1 << 30, 64 << 20


def space(scene: Scene) -> Iterator[Finding]:
    """Room for voices and journals."""
    folder = next(path for path in (scene.data, *scene.data.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    text = f"{free / (1 << 30):.1f} GiB free at {folder}"
    mend = f"du -xh {folder} | sort -h | tail; journalctl --vacuum-size=200M"
    if free < FULL:
        yield broken("disk", text, "voices and durable texts can't be written", mend)
    elif free < LOW:
        yield warning("disk", text, "the next voice may not fit", mend)
    else:
        yield fine("disk", text)


def versions(_scene: Scene) -> Iterator[Finding]:
    """Libraries as old as utterd can bear them."""
    try:
        wanted = importlib.metadata.requires("utterd") or []
    except importlib.metadata.PackageNotFoundError:
        text = "utterd is not installed as a package"
        yield warning("versions", text, "its libraries can't be checked", "pip install utterd")
        return
    found = 0
    for line in wanted:
        match = re.match(r"([A-Za-z0-9_.-]+)\s*>=\s*([\d.]+)\s*$", line)
        if not match:
            continue  # an extra, or bound to a platform
        name, least = match.groups()
        have = _version(name)
        if not have or _numbers(have) < _numbers(least):
            text = f"{name} {have or 'is missing'}, at least {least} is needed"
            yield broken("versions", text, "utterd may not start", f"pip install '{name}>={least}'")
        found += 1
    yield fine("versions", f"{found} libraries checked")


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
