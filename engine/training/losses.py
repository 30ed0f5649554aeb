"""How far the student's sound is from the teacher's."""

import torch
from torch import Tensor

from utterd.engine.training.spectra import HOP, SAMPLE_RATE

_SIZES = (2048, 1024, 512, 256)
_FLOOR = 1e-4
_MEL_KNEE_HZ = 700
_PHASE_SIZE = 1024
_PHASE_TOP_HZ = 6000
_PHASE_KNEE_HZ = 1000
"""Above it the weight falls: what is high is hard to hit, and would drown what can be learnt."""
_COMPRESSION = 0.5
_QUIET = 3e-4
"""Magnitudes below it have hardly a phase."""


def spectral(heard: Tensor, wanted: Tensor) -> Tensor:
    """Return the multi-resolution STFT loss of samples (B, S): log magnitude and convergence.

    Of the log magnitudes each mel counts for as much, not each hertz: nearly all that DNSMOS
    (P.808) misses in the student lies between 1 and 4 kHz.
    """
    total = heard.new_zeros(())
    for size in _SIZES:
        ours, theirs = _stft(heard, size).abs(), _stft(wanted, size).abs()
        difference = torch.log(ours.clamp(min=_FLOOR)) - torch.log(theirs.clamp(min=_FLOOR))
        total = total + (difference.abs() * _mel_density(size, heard.device)).mean()
        total = total + torch.linalg.vector_norm(ours - theirs) / (
            torch.linalg.vector_norm(theirs) + _FLOOR
        )
    return total / len(_SIZES)


def _mel_density(size: int, device: torch.device) -> Tensor:
    """Return mel per hertz at the bins of an STFT, (F, 1), 1 on the mean: 1 / (1 + f / 700)."""
    hertz = torch.linspace(0, SAMPLE_RATE / 2, size // 2 + 1, device=device)
    density = 1 / (1 + hertz / _MEL_KNEE_HZ)
    return (density / density.mean())[:, None]


def log_magnitude(samples: Tensor, size: int) -> Tensor:
    """Return log magnitudes of an STFT of `size`, (B, F, T), about -1 to 1 in speech."""
    return torch.log(_stft(samples, size).abs().clamp(min=_FLOOR)) / 4 + 1.25


def phase(heard: Tensor, wanted: Tensor, voiced: Tensor) -> Tensor:
    """Return the mean of 1 - cos(difference of phase) below 6 kHz: 0 is the same, 1 is chance.

    Only voiced frames count: the phase of noise is nobody's to know. Magnitudes are left to the
    spectral loss: a distance of complex spectra makes everything quieter whose phase is not hit.

    Args:
        heard: (B, S).
        wanted: (B, S).
        voiced: (B, S / 300), 1 in voiced blocks.
    """
    top = _PHASE_TOP_HZ * _PHASE_SIZE // SAMPLE_RATE
    hertz = torch.arange(top, device=heard.device) * (SAMPLE_RATE / _PHASE_SIZE)
    ours, theirs = (_stft(x, _PHASE_SIZE)[:, :top] for x in (heard, wanted))
    middles = torch.arange(ours.shape[2], device=heard.device) * (_PHASE_SIZE // 4)
    counted = voiced[:, (middles + _PHASE_SIZE // 2) // HOP][:, None]
    size = theirs.abs()
    weight = counted / (1 + hertz / _PHASE_KNEE_HZ)[:, None] * size**_COMPRESSION
    product = ours.real * theirs.real + ours.imag * theirs.imag
    cosine = product / ((ours.abs() + _QUIET) * (size + _QUIET))
    return ((1 - cosine) * weight).sum() / (weight.sum() + 1e-3)


def _stft(samples: Tensor, size: int) -> Tensor:
    window = torch.hann_window(size, device=samples.device)
    return torch.stft(
        samples, size, size // 4, window=window, center=False, return_complex=True
    ) / (size / 8)
