"""Corpora in memory, cut into what a training step takes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from utterd.engine.training import shards
from utterd.engine.training.network import POINTS
from utterd.engine.training.shards import Taught
from utterd.engine.voices import small_frames
from utterd.engine.voices.small_frames import HOP, SAMPLE_RATE, Frames

_T = TypeVar("_T", bound=np.generic)

SILENCE = 10 ** (-50 / 20)
EDGE_SAMPLES = SAMPLE_RATE // 100
"""What stays of the silence at head and tail: 10 ms, then up to whole frames."""
_SOUNDING = -3.0
"""Energy that the teacher's first and last audible frames exceed: of 224 items the ends so found
are 0.4 and 0.9 frames from those found in the sound (deviation 0.9 and 1.2)."""
_VALIDATION_EVERY, _VALIDATION_AT = 97, 5


@dataclass(frozen=True, slots=True)
class Example:
    """One item without the silence at its ends."""

    item: int
    tokens: NDArray[np.int16]
    ends: NDArray[np.int64]
    """End of each token in frames; some tokens (the pads) may have none."""
    frames: Frames
    f0: NDArray[np.float32]
    energy: NDArray[np.float32]
    audio: NDArray[np.int16]

    @property
    def length(self) -> int:
        """Frames."""
        return int(self.ends[-1])


@dataclass(frozen=True, slots=True)
class AcousticBatch:
    """A training step's crops: B of them, m blocks each."""

    tokens: Tensor
    position: Tensor
    phoneme: Tensor
    """(B, m + 39): index in `tokens`; P, one beyond, outside of the item."""
    features: Tensor
    source: Tensor
    audio: Tensor
    """(B, 300 m)."""


@dataclass(frozen=True, slots=True)
class ProsodyBatch:
    """Whole items for the prosody network."""

    tokens: Tensor
    position: Tensor
    durations: Tensor
    """(B, P) frames."""
    contour: Tensor
    """(B, P, POINTS, 3): log2(F0 / 200 Hz), voiced 0 to 1, energy / 8."""
    weight: Tensor
    """(B, P): frames of the phoneme, 0 on padding."""


def example(taught: Taught) -> Example:
    """Trim an item and lay out its frames.

    Raises:
        ValueError: its sound is silence.
    """
    first, last = _sounding(taught)
    ends = np.clip(2 * np.cumsum(taught.durations, dtype=np.int64) - first, 0, last - first)
    f0, energy = taught.f0[first:last], taught.energy[first:last]
    laid = small_frames.frames(ends, f0, energy)
    # The phase counts from the untrimmed beginning: that is where the teacher's begins.
    whole = small_frames.source(taught.f0)[first:last]
    audio = taught.audio[first * HOP : last * HOP]
    return Example(
        taught.item,
        taught.tokens,
        ends,
        Frames(laid.phoneme, laid.features, whole),
        f0,
        energy,
        audio,
    )


def _sounding(taught: Taught) -> tuple[int, int]:
    """First frame that is kept of an item, and the one behind the last."""
    if not taught.audio.size:  # of a silent teacher
        sounding = np.flatnonzero(taught.energy > _SOUNDING)
        if not sounding.size:
            raise ValueError(f"item {taught.item} of the corpus is silent")
        return int(sounding[0]), int(sounding[-1]) + 1
    loud = np.flatnonzero(np.abs(taught.audio.astype(np.int32)) > SILENCE * 32767)
    if not loud.size:
        raise ValueError(f"item {taught.item} of the corpus is silent")
    first = max(0, int(loud[0]) - EDGE_SAMPLES) // HOP
    last = -(-(int(loud[-1]) + 1 + EDGE_SAMPLES) // HOP)
    return first, min(len(taught.f0), last)


class Corpus:
    """The items of one or more corpus folders, which may be growing."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._seen: set[Path] = set()
        self.train: list[Example] = []
        self.validation: list[Example] = []
        self.refresh()
        if not self.train or not self.validation:
            names = ", ".join(map(str, folders))
            raise ValueError(f"too little speech in {names}: run the corpus command first")

    def refresh(self) -> None:
        """Load the shards that are new. One item in 97 is kept for validation."""
        for folder in self._folders:
            for _, path in sorted(shards.find(folder).items()):
                if path not in self._seen:
                    self._seen.add(path)
                    self._add(shards.read(path))

    def _add(self, items: Sequence[Taught]) -> None:
        for taught in items:
            (self.validation if _kept_back(taught) else self.train).append(example(taught))


def _kept_back(taught: Taught) -> bool:
    """Whether an item is for validation."""
    return taught.item % _VALIDATION_EVERY == _VALIDATION_AT


def first(folder: Path, count: int) -> list[Example]:
    """Return the first items of a corpus that are taught, without loading more than those.

    Raises:
        ValueError: there are none yet.
    """
    found: list[Example] = []
    for _, path in sorted(shards.find(folder).items()):
        if len(found) < count:
            found += [example(t) for t in shards.read(path) if not _kept_back(t)]
    if not found:
        raise ValueError(f"nothing in {folder}: run the corpus command first")
    return found[:count]


def digest(examples: Sequence[Example]) -> str:
    """Return a short name for exactly these items."""
    whole = hashlib.sha256()
    for example in examples:
        whole.update(example.tokens.tobytes() + example.ends.tobytes() + example.f0.tobytes())
    return whole.hexdigest()[:16]


def hours(examples: Sequence[Example]) -> float:
    """Return the length of the speech."""
    return sum(e.length for e in examples) * HOP / SAMPLE_RATE / 3600


def acoustic(
    examples: Sequence[Example], starts: Sequence[int], blocks: int, halo: int
) -> AcousticBatch:
    """Cut one crop of each example, from block `starts[i]`; beyond the ends lies silence.

    Args:
        examples: B items.
        starts: first block of each crop.
        blocks: m, the length of the crops.
        halo: frames the decoder looks at beyond a spectral frame.
    """
    tokens, position = _tokens(examples)
    outside = tokens.shape[1]
    before, after = halo + 1, halo + 2
    phoneme = np.stack(
        [
            _cut(e.frames.phoneme, s - before, blocks + before + after, outside)
            for e, s in zip(examples, starts, strict=True)
        ]
    )
    features = np.stack(
        [
            _cut(e.frames.features, s - before, blocks + before + after, 0)
            for e, s in zip(examples, starts, strict=True)
        ]
    )
    source = np.stack(
        [_cut(e.frames.source, s - 3, blocks + 6, 0) for e, s in zip(examples, starts, strict=True)]
    )
    audio = np.stack(
        [_cut(e.audio, s * HOP, blocks * HOP, 0) for e, s in zip(examples, starts, strict=True)]
    )
    return AcousticBatch(
        tokens,
        position,
        torch.from_numpy(phoneme),
        torch.from_numpy(features),
        torch.from_numpy(source),
        torch.from_numpy(audio).float() / 32767,
    )


def prosody(examples: Sequence[Example]) -> ProsodyBatch:
    """Put whole items beside each other."""
    tokens, position = _tokens(examples)
    durations = np.zeros(tokens.shape, np.float32)
    contour = np.zeros((*tokens.shape, POINTS, 3), np.float32)
    for row, e in enumerate(examples):
        counts = np.diff(e.ends, prepend=0)
        durations[row, : len(counts)] = counts
        contour[row, : len(counts)] = _points(e, counts)
    return ProsodyBatch(
        tokens,
        position,
        torch.from_numpy(durations),
        torch.from_numpy(contour),
        torch.from_numpy(durations),
    )


def _points(e: Example, counts: NDArray[np.int64]) -> NDArray[np.float32]:
    voiced = e.f0 > small_frames.VOICED_HZ
    at = np.arange(e.length) + 0.5
    tone = np.log2(np.maximum(e.f0, small_frames.VOICED_HZ) / small_frames.REFERENCE_HZ)
    if voiced.any():
        tone = np.interp(at, at[voiced], tone[voiced])
    places = (np.arange(POINTS) + 0.5) / POINTS
    times = (e.ends - counts)[:, None] + counts[:, None] * places
    tracks = (tone, voiced.astype(np.float64), e.energy / small_frames.ENERGY_SCALE)
    return np.stack([np.interp(times, at, track) for track in tracks], -1).astype(np.float32)


def _tokens(examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    longest = max(len(e.tokens) for e in examples)
    tokens = np.zeros((len(examples), longest), np.int64)
    position = np.zeros((len(examples), longest, small_frames.POSITION), np.float32)
    for row, e in enumerate(examples):
        tokens[row, : len(e.tokens)] = e.tokens
        position[row, : len(e.tokens)] = small_frames.position(len(e.tokens))
    return torch.from_numpy(tokens), torch.from_numpy(position)


def _cut(values: NDArray[_T], start: int, count: int, fill: int) -> NDArray[_T]:
    out = np.full((count, *values.shape[1:]), fill, values.dtype)
    first, last = max(start, 0), min(start + count, len(values))
    if first < last:
        out[first - start : last - start] = values[first:last]
    return out
