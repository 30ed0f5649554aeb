"""How far the student's sound is from the teacher's."""

import torch
from torch import Tensor

from utterd.engine.training.spectra import SAMPLE_RATE

_SIZES = (2048, 1024, 512, 256)
_FLOOR = 1e-4
_PHASE_SIZE = 1024
_PHASE_TOP_HZ = 6000
_COMPRESSION = 0.3


def spectral(heard: Tensor, wanted: Tensor) -> Tensor:
    """Return the multi-resolution STFT loss of samples (B, S): log magnitude and convergence."""
    total = heard.new_zeros(())
    for size in _SIZES:
        ours, theirs = _stft(heard, size).abs(), _stft(wanted, size).abs()
        total = (
            total
            + (torch.log(ours.clamp(min=_FLOOR)) - torch.log(theirs.clamp(min=_FLOOR))).abs().mean()
        )
        total = total + torch.linalg.vector_norm(ours - theirs) / (
            torch.linalg.vector_norm(theirs) + _FLOOR
        )
    return total / len(_SIZES)


def phase(heard: Tensor, wanted: Tensor) -> Tensor:
    """Return the distance of compressed complex spectra below 6 kHz, relative to the wanted."""
    top = _PHASE_TOP_HZ * _PHASE_SIZE // SAMPLE_RATE
    ours, theirs = (_compressed(_stft(x, _PHASE_SIZE)[:, :top]) for x in (heard, wanted))
    return (ours - theirs).abs().mean() / (theirs.abs().mean() + 1e-3)


def _compressed(x: Tensor) -> Tensor:
    return x * (x.real.square() + x.imag.square() + _FLOOR**2) ** ((_COMPRESSION - 1) / 2)


def _stft(samples: Tensor, size: int) -> Tensor:
    window = torch.hann_window(size, device=samples.device)
    return torch.stft(
        samples, size, size // 4, window=window, center=False, return_complex=True
    ) / (size / 8)
