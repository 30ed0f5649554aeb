"""The voice package: a folder with `voice.toml` and the files it lists, each with its checksum."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

MANIFEST = "voice.toml"
FORMAT = 1
BUILT_IN = Path(__file__).with_name("builtin") / "small"
"""The voice that comes with utterd: always there, so that nothing has to be added first."""

Kind = Literal["kokoro", "vits", "small"]


class VoiceError(Exception):
    """A voice can't be used; one line: what happened, to what, and what to do."""


class File(msgspec.Struct, frozen=True):
    """What a file of the package must be."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """`voice.toml`."""

    format: int
    """Version of this layout; 1."""
    name: str
    kind: Kind
    languages: tuple[str, ...]
    """BCP 47, the main one first."""
    sample_rate: int
    """Hz."""
    licence: str
    """SPDX where one is known."""
    origin: str
    phonemes: Literal["kokoro", "espeak"]
    """The alphabet that its graph reads."""
    timings: Literal["exact", "proportional"]
    """Whether its graph tells when each phoneme sounds, or words are spread evenly."""
    speakers: tuple[str, ...]
    default_speaker: str
    files: dict[str, File]
    """By path inside the folder, with `/`."""


@dataclass(frozen=True, slots=True)
class VoicePackage:
    """A voice on disk whose `voice.toml` was read."""

    folder: Path
    manifest: Manifest

    def path(self, name: str) -> Path:
        """Where a listed file lies.

        Raises:
            VoiceError: the manifest doesn't list it.
        """
        if name not in self.manifest.files:
            raise VoiceError(f"voice {self.manifest.name}: {MANIFEST} lists no {name}; add it anew")
        return self.folder / name

    def verify(self, progress: Callable[[float], None] = lambda fraction: None) -> None:
        """Compare every file with its length and checksum.

        Args:
            progress: called with the fraction done.

        Raises:
            VoiceError: a file is missing, shorter, longer or different.
        """
        total = sum(file.bytes for file in self.manifest.files.values()) or 1
        done = 0
        for name, file in self.manifest.files.items():
            self._verify_file(name, file)
            done += file.bytes
            progress(done / total)

    def _verify_file(self, name: str, file: File) -> None:
        path = self.folder / name
        remedy = _mend(self.folder, "remove the voice and add it again")
        try:
            size = path.stat().st_size
            if size != file.bytes:
                raise VoiceError(f"{path} has {size} bytes instead of {file.bytes}: {remedy}")
            if sha256(path) != file.sha256:
                raise VoiceError(f"{path} is damaged (its SHA-256 differs): {remedy}")
        except OSError as error:
            raise VoiceError(f"{path} can't be read ({error.strerror}): {remedy}") from None


def read(folder: Path) -> VoicePackage:
    """Read the manifest of a package; `VoicePackage.verify` reads its files.

    Raises:
        VoiceError: there is no sound manifest.
    """
    path = folder / MANIFEST
    try:
        manifest = msgspec.toml.decode(path.read_bytes(), type=Manifest)
    except OSError as error:
        mend = _mend(folder, "no voice here")
        raise VoiceError(f"{path} can't be read ({error.strerror}): {mend}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        mend = _mend(folder, "add the voice again")
        raise VoiceError(f"{path} is no voice manifest ({error}): {mend}") from None
    if manifest.format != FORMAT:
        mend = _mend(folder, "add the voice again")
        raise VoiceError(
            f"{path} has format {manifest.format}, this version reads {FORMAT}: {mend}"
        )
    if manifest.default_speaker not in manifest.speakers:
        raise VoiceError(f"{path}: default_speaker is none of its speakers")
    for name in manifest.files:
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts:
            raise VoiceError(f"{path} lists {name}, which lies outside the voice")
    return VoicePackage(folder, manifest)


def describe_files(folder: Path) -> dict[str, File]:
    """Lengths and checksums of all files below `folder` except the manifest."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): File(path.stat().st_size, sha256(path))
        for path in paths
        if path.name != MANIFEST
    }


def write(folder: Path, manifest: Manifest) -> VoicePackage:
    """Write `voice.toml` and bring the whole folder to the disk."""
    values = msgspec.to_builtins(manifest)
    files = values.pop("files")
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    for name, file in files.items():
        lines += ["", f"[files.{json.dumps(name)}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in file.items()]
    (folder / MANIFEST).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)
    return VoicePackage(folder, manifest)


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mend(folder: Path, otherwise: str) -> str:
    """What to do about a damaged package; nobody added the one that comes with utterd."""
    return "install utterd again" if folder == BUILT_IN else otherwise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
