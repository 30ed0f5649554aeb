"""A small real voice of random weights, and caches of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.training.conftest import networks, package
from utterd.engine.cache.disk import Disk
from utterd.engine.cache.keys import Keys, identity
from utterd.engine.cache.secret import secret
from utterd.engine.cache.store import Cache
from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.voices.contract import Voice
from utterd.engine.voices.load import load
from utterd.engine.voices.package import VoicePackage

__all__ = ["networks", "package"]

WEEK_S = 604_800.0


@pytest.fixture(scope="session")
def tiny(package: VoicePackage) -> Iterator[Voice]:
    voice = load(package.folder, "", OnnxCpu(), 1)
    yield voice
    voice.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., Disk]]:
    """Open the database in `tmp_path/cache` as a worker does."""
    opened = []

    def begin(voice: str = "tiny", **options: object) -> Disk:
        values: dict[str, object] = {
            "identity": b"1", "limit_bytes": 1 << 20, "ttl_s": WEEK_S
        } | options  # fmt: skip
        opened.append(Disk(tmp_path / "cache", voice, **values))
        opened[-1].flush()
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


@pytest.fixture
def cache(tmp_path: Path, package: VoicePackage, disk) -> Callable[..., Cache]:
    """A cache of the tiny voice, on disk as well where asked for."""

    def begin(memory_bytes: int = 1 << 20, ttl_s: float = WEEK_S, on_disk: bool = False) -> Cache:
        ours = identity(package, "onnxruntime-cpu", 1)
        keys = Keys(secret(tmp_path / "cache"), ours)
        return Cache(keys, memory_bytes, ttl_s, disk(identity=ours) if on_disk else None)

    return begin
