"""A network under evaluation: whole sentences from its weights, without leaving PyTorch."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from utterd.engine.training import dataset
from utterd.engine.training.dataset import Example
from utterd.engine.training.export import Networks
from utterd.engine.training.tasks import speak
from utterd.engine.voices import small_frames


@dataclass(frozen=True, slots=True)
class Spoken:
    """What the student said of an item."""

    copied: NDArray[np.float32]
    """With the teacher's durations, F0 and energy: as long as the teacher's sound."""
    own: NDArray[np.float32]
    """With its own."""
    f0: NDArray[np.float32]
    """Its own F0 in Hz, 0 where unvoiced, laid over the teacher's durations."""
    durations: NDArray[np.float32]
    """Its own, per token, in frames."""


def say(networks: Networks, example: Example) -> Spoken:
    """Speak an item both ways, with the same noise every time."""
    tokens = torch.from_numpy(example.tokens.astype(np.int64))[None]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        position = torch.from_numpy(small_frames.position(tokens.shape[1]))[None]
        durations, points = networks.prosody(tokens, position)
        lengths, contour = durations[0].numpy(), points[0].numpy()
        counts = np.diff(example.ends, prepend=0).astype(np.float64)
        f0, _ = small_frames.contour(contour, example.ends, counts, 1.0)
        return Spoken(
            _samples(networks, example),
            _samples(networks, _with_own(example, lengths, contour)),
            f0,
            lengths,
        )


def _with_own(
    example: Example, lengths: NDArray[np.float32], contour: NDArray[np.float32]
) -> Example:
    """The same item with the student's prosody; its sound is empty."""
    own = lengths.astype(np.float64)
    ends = np.maximum(small_frames.ends(own), 1)
    f0, energy = small_frames.contour(contour, ends, own, 1.0)
    frames = small_frames.frames(ends, f0, energy)
    audio = np.zeros(int(ends[-1]) * small_frames.HOP, np.int16)
    return Example(example.item, example.tokens, ends, frames, f0, energy, audio)


def _samples(networks: Networks, example: Example) -> NDArray[np.float32]:
    batch = dataset.acoustic([example], [0], example.length, networks.shape.halo)
    samples = speak(networks.acoustic, batch, torch.device("cpu"))
    return np.asarray(samples[0].numpy(), np.float32)
