"""Real voices, loaded once, and real workers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import workers
from tests.engine.running import Running
from utterd.engine.frontend.reader import Reader
from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.voices.contract import Voice
from utterd.engine.voices.fetch import fetch
from utterd.engine.voices.kokoro_build import PARTS, join
from utterd.engine.voices.load import load


@pytest.fixture(scope="session")
def reader() -> Reader:
    return Reader()


@pytest.fixture(scope="session")
def kokoro(kokoro_dir: Path) -> Iterator[Voice]:
    voice = load(kokoro_dir, "", OnnxCpu(), 2)
    yield voice
    voice.close()


@pytest.fixture(scope="session")
def joe(joe_dir: Path) -> Iterator[Voice]:
    voice = load(joe_dir, "", OnnxCpu(), 2)
    yield voice
    voice.close()


@pytest.fixture(scope="session")
def int8_graph() -> Path:
    """Kokoro as it comes, before `voices add` rewrites it."""
    path = workers.kept() / "kokoro-int8.onnx"
    with workers.alone(path):
        if not path.exists():
            downloads = path.with_name("downloads")
            downloads.mkdir(exist_ok=True)
            path.with_suffix(".part").write_bytes(join([fetch(part, downloads) for part in PARTS]))
            path.with_suffix(".part").rename(path)
    return path


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Start workers: `start(voice_dir, ...)`; they are ended after the test."""
    started: list[Running] = []

    def begin(voice_dir: Path, **options: object) -> Running:
        started.append(Running(voice_dir, **options))
        return started[-1]

    yield begin
    for running in started:
        running.close()


@pytest.fixture(scope="module")
def joes_worker(joe_dir: Path) -> Iterator[Running]:
    """One worker for the tests of a module that leave it alive."""
    running = Running(joe_dir, warm=False)
    running.ready()
    yield running
    running.close()
