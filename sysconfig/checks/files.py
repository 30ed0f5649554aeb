"""Files: disk space, voices and their checksums, engine caches, versions of libraries."""

import hashlib
import importlib.metadata
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

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


def voices(scene: Scene) -> Iterator[Finding]:
    """Every file of every voice against the size and checksum in its manifest."""
    manifests = sorted((scene.data / "voices").glob("*/voice.toml"))
    if not manifests:
        text = f"none under {scene.data / 'voices'}"
        yield broken("voices", text, "there is no voice to speak with", "utterd voices add kokoro")
    for manifest in manifests:
        name = manifest.parent.name
        if problem := _damage(manifest):
            mend = f"utterd voices remove {name} && utterd voices add {name}"
            yield broken(f"voice {name}", problem, "it won't load, or speaks nonsense", mend)
        else:
            yield fine(f"voice {name}", "every file is as its manifest says")


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


def _damage(manifest: Path) -> str:
    """What is wrong with a voice; empty if nothing is."""
    try:
        files = tomllib.loads(manifest.read_text(encoding="utf-8"))["files"]
        for name, told in files.items():
            path = manifest.parent / name
            if path.stat().st_size != told["bytes"]:
                return f"{name} has {path.stat().st_size} bytes instead of {told['bytes']}"
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != told["sha256"]:
                    return f"{name} has another checksum"
    except OSError as error:
        return f"{Path(str(error.filename)).name}: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "voice.toml is no manifest"
    return ""


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
