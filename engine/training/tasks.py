"""What is taught: the acoustic network, and the prosody network."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from utterd.engine.training import dataset, losses
from utterd.engine.training.adversary import Adversary
from utterd.engine.training.dataset import Example
from utterd.engine.training.network import Acoustic, Block, Prosody, Shape

_N = TypeVar("_N", bound=nn.Module)

_CROPS, _CROP_BLOCKS = 6, 72
_EDGE_BLOCKS = 8
"""How far a crop may reach beyond the ends of an item."""
_PHASE_WEIGHT = 1.5
_CONTESTED = 0.5
"""Factor on the rate beside an adversary: two that learn from each other learn slowly."""
_SENTENCES = 16
_DRAWN = 4 * _SENTENCES
"""Of so many, neighbours in length make a batch: padding is paid for."""


class Task(Protocol):
    """A network with its losses."""

    rate: float
    """Peak learning rate."""

    @property
    def network(self) -> nn.Module:
        """What is taught."""
        ...

    def losses(self, examples: Sequence[Example], rng: np.random.Generator) -> dict[str, Tensor]:
        """Draw a batch and return its losses; `total` is the one to follow."""
        ...

    def validate(self, network: nn.Module, examples: Sequence[Example]) -> dict[str, float]:
        """Return the mean losses of `network` over whole items."""
        ...

    def state(self) -> dict[str, Any] | None:
        """Return what a checkpoint must hold beside the network."""
        ...

    def restore(self, state: dict[str, Any] | None) -> None:
        """Go on from `state`."""
        ...


class AcousticTask:
    """Phonemes and the teacher's prosody to the teacher's sound."""

    rate = 1.5e-3

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.network = mixed(Acoustic(shape).to(device), device)
        self.adversary: Adversary | None = None
        self._shape = shape
        self._device = device

    def contest(self, share: float) -> Adversary:
        """Set an adversary of that share against the network, or give it to the one there is."""
        if self.adversary is None:
            self.adversary = Adversary(self._device, share)
            self.rate = AcousticTask.rate * _CONTESTED
        self.adversary.share = share
        return self.adversary

    def losses(self, examples: Sequence[Example], rng: np.random.Generator) -> dict[str, Tensor]:
        """See `Task`."""
        lengths = np.array([e.length for e in examples], np.float64) + _EDGE_BLOCKS
        chosen = [examples[i] for i in rng.choice(len(examples), _CROPS, p=lengths / lengths.sum())]
        starts = [_start(e.length, rng) for e in chosen]
        if self.adversary is None:
            return self._losses(self.network, chosen, starts, _CROP_BLOCKS)
        return self._contested(self.adversary, chosen, starts)

    def validate(self, network: nn.Module, examples: Sequence[Example]) -> dict[str, float]:
        """See `Task`."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            each = [self._losses(network, [e], [0], e.length) for e in examples]
        return {name: float(np.mean([float(e[name]) for e in each])) for name in each[0]}

    def _losses(
        self, network: nn.Module, examples: Sequence[Example], starts: Sequence[int], blocks: int
    ) -> dict[str, Tensor]:
        if not isinstance(network, Acoustic):
            raise TypeError("the acoustic task teaches an Acoustic network")
        batch = dataset.acoustic(examples, starts, blocks, self._shape.halo)
        return self._distance(speak(network, batch, self._device), batch)

    def _contested(
        self, adversary: Adversary, examples: Sequence[Example], starts: Sequence[int]
    ) -> dict[str, Tensor]:
        """The losses, with a `total` that also pulls where the adversary says."""
        batch = dataset.acoustic(examples, starts, _CROP_BLOCKS, self._shape.halo)
        heard = speak(self.network, batch, self._device)
        samples = heard.detach().requires_grad_()
        found = self._distance(samples, batch)
        (gradient,) = torch.autograd.grad(found["total"], samples)
        pull, told = adversary.pull(samples.detach(), batch.audio.to(self._device), gradient)
        # The value stays that of the losses; the gradient at the samples is the sum of both.
        towards = (heard * (gradient + pull)).sum()
        total = found["total"].detach() + towards - towards.detach()
        return found | {"total": total, "told": told}

    def _distance(self, heard: Tensor, batch: dataset.AcousticBatch) -> dict[str, Tensor]:
        audio = batch.audio.to(self._device)
        voiced = batch.source[:, 3:-3, 3].to(self._device)
        spectral, phase = losses.spectral(heard, audio), losses.phase(heard, audio, voiced)
        total = spectral + _PHASE_WEIGHT * phase
        return {"total": total, "spectral": spectral, "phase": phase}

    def state(self) -> dict[str, Any] | None:
        """See `Task`."""
        return self.adversary.state() if self.adversary else None

    def restore(self, state: dict[str, Any] | None) -> None:
        """See `Task`."""
        if state is not None:
            self.contest(state["share"]).restore(state)


class ProsodyTask:
    """Phonemes to the teacher's durations, F0, voicing and energy."""

    rate = 1e-3

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.network = mixed(Prosody(shape).to(device), device)
        self._device = device

    def losses(self, examples: Sequence[Example], rng: np.random.Generator) -> dict[str, Tensor]:
        """See `Task`."""
        drawn = rng.choice(len(examples), min(_DRAWN, len(examples)), replace=False)
        by_length = sorted((examples[i] for i in drawn), key=lambda e: len(e.tokens))
        first = int(rng.integers(0, max(len(by_length) - _SENTENCES, 0) + 1))
        return self._losses(self.network, by_length[first : first + _SENTENCES])

    @staticmethod
    def duration_error(heard: Tensor, wanted: Tensor, inside: Tensor) -> Tensor:
        """Return the mean squared error of durations (B, P), less for what is long.

        The mean, not the median, keeps sentences as long as the teacher's. Errors grow with the
        length of a phoneme, so they are weighed, but by the prediction: weights by the truth count
        the short ones of equal phonemes for more, and made sentences 5 % short.
        """
        weight = inside / (heard.detach() + 3)
        return ((heard - wanted).square() * weight).sum() / inside.sum()

    def validate(self, network: nn.Module, examples: Sequence[Example]) -> dict[str, float]:
        """See `Task`."""
        each = [self._losses(network, [e]) for e in examples]
        return {name: float(np.mean([float(e[name]) for e in each])) for name in each[0]}

    def _losses(self, network: nn.Module, examples: Sequence[Example]) -> dict[str, Tensor]:
        batch = dataset.prosody(examples)
        tokens, position = batch.tokens.to(self._device), batch.position.to(self._device)
        wanted, weight = batch.contour.to(self._device), batch.weight.to(self._device)[..., None]
        truth = batch.durations.to(self._device)
        durations, contour = network(tokens, position)
        duration = self.duration_error(durations, truth, position[..., -1])
        frames = weight.sum() * contour.shape[2]
        voiced = wanted[..., 1]
        tone = ((contour[..., 0] - wanted[..., 0]).abs() * voiced * weight).sum()
        tone = tone / ((voiced * weight).sum() + 1)
        voicing = nn.functional.binary_cross_entropy_with_logits(
            contour[..., 1], voiced, reduction="none"
        )
        voicing = (voicing * weight).sum() / frames
        energy = ((contour[..., 2] - wanted[..., 2]).abs() * weight).sum() / frames
        total = duration + 6 * tone + voicing + 2 * energy
        return {
            "total": total, "duration": duration, "tone": tone, "voicing": voicing,
            "energy": energy,
        }  # fmt: skip

    def state(self) -> dict[str, Any] | None:
        """See `Task`."""
        return None

    def restore(self, state: dict[str, Any] | None) -> None:
        """See `Task`."""


def mixed(network: _N, device: torch.device) -> _N:
    """Let the perceptrons be taught in bfloat16 where the processor multiplies it faster."""
    if device.type == "cpu":
        faster = torch.cpu._is_avx512_bf16_supported()  # no public way to ask
    else:
        faster = torch.cuda.is_bf16_supported()
    for module in network.modules():
        if isinstance(module, Block):
            module.mixed = faster
    return network


def speak(network: Acoustic, batch: dataset.AcousticBatch, device: torch.device) -> Tensor:
    """Return the network's samples, (B, 300 m), of a batch, with fresh noise."""
    vectors = network.encoder(batch.tokens.to(device), batch.position.to(device))
    vectors = nn.functional.pad(vectors, (0, 0, 0, 1))
    index = batch.phoneme.to(device)[..., None].expand(-1, -1, vectors.shape[2])
    source = batch.source.to(device)
    rows = (len(source), source.shape[1] - 3, 2, 512)
    noise = torch.randn(rows, device=device) * 0.5**0.5
    overlap, states = network.decoder.fresh(len(source), device)
    samples: Tensor = network.decoder(
        torch.gather(vectors, 1, index), batch.features.to(device), source, noise, overlap, states
    )[0]
    return samples


def _start(length: int, rng: np.random.Generator) -> int:
    last = max(length - _CROP_BLOCKS, 0) + _EDGE_BLOCKS
    return int(rng.integers(-_EDGE_BLOCKS, last + 1))
