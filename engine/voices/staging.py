"""Building a voice beside the place where it will stand, then moving it there in one step.

Layout below `DATA/voices`: `NAME/` a finished voice; `.NAME.staging/` one being built, with
`downloads/` (whole ones are kept when building is cut short, so that the next try goes on) and
`voice/`; `.NAME.lock` held by the process that builds; `.NAME.old` a replaced voice on its way
out.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from utterd.engine.voices.package import VoiceError

Progress = Callable[[str, float], None]
"""Called with what is being done and the fraction of the whole that is done."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The two folders that a build may write in."""

    downloads: Path
    voice: Path
    """Becomes the voice package."""


@contextlib.contextmanager
def staged(data_dir: Path, name: str, need_bytes: int) -> Iterator[Staging]:
    """Build a voice: on leaving without an error it replaces what stood at its name.

    Args:
        data_dir: where utterd keeps its state.
        name: of the voice.
        need_bytes: free space that building takes at its peak.

    Raises:
        VoiceError: too little space, no permission, or another process builds this voice.
    """
    voices = data_dir / "voices"
    root = voices / f".{name}.staging"
    with _explained(voices), _locked(voices, name):
        _settle(voices, name)
        _check_space(voices, root, need_bytes)
        staging = Staging(root / "downloads", root / "voice")
        shutil.rmtree(staging.voice, ignore_errors=True)
        staging.downloads.mkdir(parents=True, exist_ok=True)
        staging.voice.mkdir()
        try:
            yield staging
            _publish(voices, name, staging.voice)
        except BaseException:
            _keep_downloads(root, staging)
            raise
        shutil.rmtree(root)


def remove(data_dir: Path, name: str) -> bool:
    """Remove a voice and whatever building it left behind.

    Returns:
        False if there was neither.

    Raises:
        VoiceError: no permission, or another process builds it.
    """
    voices = data_dir / "voices"
    if not voices.is_dir():
        return False
    found = False
    with _explained(voices), _locked(voices, name):
        _settle(voices, name)
        if (voices / name).exists():
            found = True
            old = voices / f".{name}.old"
            (voices / name).rename(old)
            shutil.rmtree(old)
        if (voices / f".{name}.staging").exists():
            found = True
            shutil.rmtree(voices / f".{name}.staging")
    return found


def _keep_downloads(root: Path, staging: Staging) -> None:
    """After a failure keep nothing but whole downloads, for the next try."""
    shutil.rmtree(staging.voice, ignore_errors=True)
    whole = [path for path in staging.downloads.iterdir() if path.is_file()]
    for path in staging.downloads.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    if not whole:
        shutil.rmtree(root)


def _settle(voices: Path, name: str) -> None:
    """Finish an exchange of folders that a kill cut in two."""
    old = voices / f".{name}.old"
    if old.exists():
        if (voices / name).exists():
            shutil.rmtree(old)
        else:
            old.rename(voices / name)


def _publish(voices: Path, name: str, built: Path) -> None:
    final, old = voices / name, voices / f".{name}.old"
    if final.exists():
        final.rename(old)
    built.rename(final)
    descriptor = os.open(voices, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    shutil.rmtree(old, ignore_errors=True)


def _check_space(voices: Path, root: Path, need_bytes: int) -> None:
    there = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    free = shutil.disk_usage(voices).free + there
    if free < need_bytes:
        raise VoiceError(
            f"{voices} has {free // 1_000_000} MB free, building this voice takes "
            f"{need_bytes // 1_000_000} MB: free some space, or keep the data on another disk"
        )


@contextlib.contextmanager
def _explained(voices: Path) -> Iterator[None]:
    """Turn errors of the file system into one line."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise VoiceError(f"{voices}: the disk is full; free some space, try again") from None
        raise VoiceError(
            f"{error.filename or voices}: {error.strerror or error}; check the folder and its owner"
        ) from None


@contextlib.contextmanager
def _locked(voices: Path, name: str) -> Iterator[None]:
    voices.mkdir(parents=True, exist_ok=True)
    path = voices / f".{name}.lock"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise VoiceError(
                f"voice {name} is being added or removed by another process: wait for it"
            ) from None
        if not path.exists() or path.stat().st_ino != os.fstat(descriptor).st_ino:
            raise VoiceError(f"voice {name} was just added or removed by another: try again")
        try:
            yield
        finally:
            path.unlink()
    finally:
        os.close(descriptor)
