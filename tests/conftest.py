"""Fixtures for all rooms."""

from collections.abc import Iterator

import pytest
from tests.sound_server import SoundServer


@pytest.fixture(scope="session")
def sound_server() -> Iterator[SoundServer]:
    """A real sound server with one speaker; give `sound_server.environment` to your processes."""
    server = SoundServer()
    yield server
    server.close()
