"""Shards: 16 rendered items in one file whose name holds the checksum of its content.

One rename makes a shard appear, so there is no moment at which a kill leaves half of one, and no
second file that could disagree with it.
"""

import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from utterd.engine.training.files import write_whole
from utterd.engine.training.teacher import Rendering
from utterd.engine.voices.small_frames import FRAMES_PER_SECOND

ITEMS = 16
_NAME = re.compile(r"shard-(\d{5})-([0-9a-f]{16})\.npz")


@dataclass(frozen=True, slots=True)
class Taught:
    """One item as stored; the arrays are those of `Rendering`, audio as int16."""

    item: int
    """Index in the plan."""
    tokens: NDArray[np.int16]
    audio: NDArray[np.int16]
    durations: NDArray[np.int16]
    f0: NDArray[np.float32]
    energy: NDArray[np.float32]


def taught(item: int, tokens: NDArray[np.int16], rendering: Rendering) -> Taught:
    """Make a rendering ready to be stored."""
    audio = np.round(np.clip(rendering.audio, -1, 1) * 32767).astype(np.int16)
    return Taught(item, tokens, audio, rendering.durations, rendering.f0, rendering.energy)


def write(folder: Path, number: int, items: list[Taught]) -> Path:
    """Store a shard; returns its path."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        items=np.array([t.item for t in items], np.int32),
        token_lengths=np.array([len(t.tokens) for t in items], np.int32),
        frame_lengths=np.array([len(t.f0) for t in items], np.int32),
        tokens=np.concatenate([t.tokens for t in items]),
        durations=np.concatenate([t.durations for t in items]),
        audio=np.concatenate([t.audio for t in items]),
        f0=np.concatenate([t.f0 for t in items]),
        energy=np.concatenate([t.energy for t in items]),
    )
    content = buffer.getvalue()
    path = folder / f"shard-{number:05d}-{_digest(content)}.npz"
    write_whole(path, content)
    return path


def find(folder: Path) -> dict[int, Path]:
    """Return the shards of a folder by number, without looking inside."""
    named = ((_NAME.fullmatch(path.name), path) for path in sorted(folder.iterdir()))
    return {int(match[1]): path for match, path in named if match}


def seconds(path: Path) -> float:
    """Return the length of a shard's speech, without loading it."""
    with np.load(path) as arrays:
        return float(arrays["frame_lengths"].sum()) / FRAMES_PER_SECOND


def read(path: Path) -> list[Taught]:
    """Load a shard.

    Raises:
        ValueError: the content does not have the checksum in its name.
    """
    content = path.read_bytes()
    match = _NAME.fullmatch(path.name)
    if match is None or _digest(content) != match[2]:
        raise ValueError(f"{path} is damaged: delete it and run the corpus command again")
    with np.load(io.BytesIO(content)) as arrays:
        return list(_items({name: arrays[name] for name in arrays.files}))


def _items(arrays: dict[str, NDArray[np.generic]]) -> Iterator[Taught]:
    token_ends = np.cumsum(arrays["token_lengths"])[:-1]
    frame_ends = np.cumsum(arrays["frame_lengths"])[:-1]
    audio_ends = frame_ends * 300
    for item, tokens, audio, durations, f0, energy in zip(
        arrays["items"],
        np.split(arrays["tokens"], token_ends),
        np.split(arrays["audio"], audio_ends),
        np.split(arrays["durations"], token_ends),
        np.split(arrays["f0"], frame_ends),
        np.split(arrays["energy"], frame_ends),
        strict=True,
    ):
        yield Taught(int(item), tokens, audio, durations, f0, energy)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
