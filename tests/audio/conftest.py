"""Fixtures for the player's tests."""

from collections.abc import Iterator

import pytest

from tests.audio.running import Running, Start
from utterd.audio.messages import Configure


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts players and ends them."""
    started: list[Running] = []

    def start_one(**configure: object) -> Running:
        started.append(Running(Configure(**configure)))
        return started[-1]

    yield start_one
    for running in started:
        running.close()
