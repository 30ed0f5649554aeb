"""Signals of the source-filter head: pulse train, short-time spectrum and its inverse.

Frames are 300 samples (a block); spectral frame k is centred on the first sample of block k and
lies in blocks k-2 to k+1. All is `valid`: an output exists where all of its inputs do, so that a
whole sentence and any chunks of it are computed from the same numbers.

Shapes: B batch, T frames, F = 512 bins (constant and highest bin are left out).
"""

import math
from typing import Protocol

import torch
from torch import Tensor, nn

SAMPLE_RATE = 24_000
HOP = 300
FFT = 1024
BINS = FFT // 2
SPAN = 4
"""Blocks a spectral frame lies in."""
TOP_HZ = 11_000.0
"""Highest harmonic of the pulse train."""
_ROOT = 32
"""FFT = _ROOT x _ROOT, the two stages of the transform by matrices."""
_PAD = (SPAN * HOP - FFT) // 2


def window() -> Tensor:
    """Return the periodic Hann window, (FFT,)."""
    return torch.hann_window(FFT, periodic=True, dtype=torch.float64).float()


class PulseTrain(nn.Module):
    """A band-limited pulse train: all harmonics up to 11 kHz at amplitude one, in phase."""

    steps: Tensor

    def __init__(self) -> None:
        super().__init__()
        centred = (torch.arange(HOP, dtype=torch.float64) + 0.5) / HOP - 0.5
        self.register_buffer("steps", centred.float().view(2, HOP // 2), persistent=False)

    def forward(self, source: Tensor) -> Tensor:
        """Make the samples.

        Args:
            source: (B, T, 4): phase in cycles at the middle of the block, cycles from the last
                block's middle to this one's, cycles from here to the next, voiced (0 or 1).

        Returns:
            (B, T, HOP); zero where unvoiced.
        """
        phase, slopes, voiced = source[..., 0:1], source[..., 1:3], source[..., 3:4]
        before = slopes[..., 0:1]
        cycles = phase.unsqueeze(-1) + slopes.unsqueeze(-1) * self.steps
        cycles = cycles - torch.round(cycles)
        cycles = torch.where(cycles.abs() < 1e-5, 1e-5, cycles)
        limit = TOP_HZ / (SAMPLE_RATE / HOP) / before.clamp(min=0.5).unsqueeze(-1)
        count = torch.floor(limit)
        angle = cycles * math.pi
        whole = (torch.sin(angle * (2 * count + 1)) / torch.sin(angle) - 1) * 0.5
        rest = (limit - count) * torch.cos(angle * (2 * count + 2))
        return _rows((whole + rest) * voiced.unsqueeze(-1), HOP)


class Transform(Protocol):
    """A real FFT of FFT samples without its constant and highest bin, and its inverse."""

    def spectrum(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return real and imaginary parts, (B, T, F), of (B, T, FFT)."""
        ...

    def signal(self, real: Tensor, imaginary: Tensor) -> Tensor:
        """Return (B, T, FFT)."""
        ...


class FastTransform(nn.Module):
    """By the library's FFT, for training."""

    def spectrum(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """See `Transform`."""
        bins = torch.fft.rfft(frames)[..., :BINS]
        bins = torch.cat((torch.zeros_like(bins[..., :1]), bins[..., 1:]), -1)
        return bins.real, bins.imag

    def signal(self, real: Tensor, imaginary: Tensor) -> Tensor:
        """See `Transform`."""
        bins = torch.complex(real[..., 1:], imaginary[..., 1:])
        signal: Tensor = torch.fft.irfft(nn.functional.pad(bins, (1, 1)), FFT)
        return signal


class MatrixTransform(nn.Module):
    """By two stages of 32 x 32 matrices, for graphs: static, and an eighth of one large matrix.

    With n = 32 a + b and k = c + 32 d (a, b, c < 32; d < 16):
    exp(2 pi i k n / 1024) = exp(2 pi i c a / 32) exp(2 pi i c b / 1024) exp(2 pi i d b / 32).
    """

    first: Tensor
    second: Tensor
    twiddle_cos: Tensor
    twiddle_sin: Tensor
    back_first: Tensor
    back_second: Tensor
    keep: Tensor

    def __init__(self) -> None:
        super().__init__()
        r = torch.arange(_ROOT, dtype=torch.float64)
        half = r[: _ROOT // 2]
        ca = 2 * math.pi * r.outer(r) / _ROOT
        cb = 2 * math.pi * r.outer(r) / FFT
        bd = 2 * math.pi * r.outer(half) / _ROOT
        keep = torch.ones(BINS, dtype=torch.float64)
        keep[0] = 0
        back_first = torch.cat(
            (torch.cat((bd.cos().T, bd.sin().T), 1), torch.cat((-bd.sin().T, bd.cos().T), 1))
        )
        second = torch.cat(
            (torch.cat((bd.cos(), -bd.sin()), 1), torch.cat((bd.sin(), bd.cos()), 1))
        )
        constants = {
            "first": torch.cat((ca.cos(), -ca.sin()), 1),  # a -> (c real, c imaginary)
            "second": second,  # (b real, b imaginary) -> (d real, d imaginary)
            "twiddle_cos": cb.cos(),  # (c, b), symmetric
            "twiddle_sin": cb.sin(),
            "back_first": back_first,  # (d real, d imaginary) -> (b real, b imaginary)
            "back_second": torch.cat((ca.cos(), -ca.sin())) * (2 / FFT),
            "keep": keep,
        }
        for name, value in constants.items():
            self.register_buffer(name, value.float(), persistent=False)

    def spectrum(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """See `Transform`."""
        grid = _grid(frames).transpose(2, 3)  # (B, T, b, a)
        real, imaginary = torch.split(grid @ self.first, _ROOT, -1)  # (B, T, b, c)
        turned_real = real * self.twiddle_cos + imaginary * self.twiddle_sin
        turned_imaginary = imaginary * self.twiddle_cos - real * self.twiddle_sin
        both = torch.cat((turned_real, turned_imaginary), 2).transpose(2, 3)  # (B, T, c, 2b)
        out_real, out_imaginary = torch.split(both @ self.second, _ROOT // 2, -1)  # (B, T, c, d)
        return (
            _rows(out_real.transpose(2, 3), BINS) * self.keep,
            _rows(out_imaginary.transpose(2, 3), BINS) * self.keep,
        )

    def signal(self, real: Tensor, imaginary: Tensor) -> Tensor:
        """See `Transform`."""
        grid_real = _grid(real * self.keep).transpose(2, 3)
        grid_imaginary = _grid(imaginary * self.keep).transpose(2, 3)
        both = torch.cat((grid_real, grid_imaginary), -1)  # (B, T, c, 2d)
        part_real, part_imaginary = torch.split(both @ self.back_first, _ROOT, -1)  # (B, T, c, b)
        turned_real = part_real * self.twiddle_cos - part_imaginary * self.twiddle_sin
        turned_imaginary = part_real * self.twiddle_sin + part_imaginary * self.twiddle_cos
        both = torch.cat((turned_real, turned_imaginary), 2).transpose(2, 3)  # (B, T, b, 2c)
        return _rows((both @ self.back_second).transpose(2, 3), FFT)  # (B, T, a, b)


def _grid(values: Tensor) -> Tensor:
    return _rows(values, values.shape[2] // _ROOT, _ROOT)


def _rows(values: Tensor, *sizes: int) -> Tensor:
    """Reshape what lies in each (batch, frame); in a graph the number of frames alone is open."""
    return values.reshape(int(values.shape[0]), -1, *map(int, sizes))


def _shifted(rows: Tensor) -> list[Tensor]:
    """SPAN views of (B, T, ..), each T - SPAN + 1 long, cut by constants: graphs have them free."""
    last = SPAN - 1
    return [rows[:, i : i - last if i < last else None] for i in range(SPAN)]


class Analysis(nn.Module):
    """Blocks of samples to windowed spectral frames; a cosine of amplitude one peaks at one."""

    scaled: Tensor

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform = transform
        self.register_buffer("scaled", window() * (2 / window().sum()), persistent=False)

    def forward(self, blocks: Tensor) -> tuple[Tensor, Tensor]:
        """Return real and imaginary parts (B, T-3, F) of blocks (B, T, HOP)."""
        spans = torch.cat(_shifted(blocks), -1)
        spectrum: tuple[Tensor, Tensor] = self.transform.spectrum(
            spans[..., _PAD : _PAD + FFT] * self.scaled
        )
        return spectrum


class Synthesis(nn.Module):
    """Spectral frames to blocks of samples by overlap-add, the inverse of `Analysis`."""

    weights: Tensor

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform = transform
        w = nn.functional.pad(window().double(), (_PAD, _PAD))
        energy = w.square().view(SPAN, HOP).sum(0).repeat(SPAN)
        weights = (w / energy * (w.sum() / 2))[_PAD : _PAD + FFT]
        self.register_buffer("weights", weights.float(), persistent=False)

    def forward(self, real: Tensor, imaginary: Tensor, overlap: Tensor) -> tuple[Tensor, Tensor]:
        """Make samples.

        Args:
            real: (B, T, F).
            imaginary: (B, T, F).
            overlap: (B, 0 or 3, 1200): what the last call left.

        Returns:
            Blocks (B, T - 3 + overlap, HOP), and what to pass to the next call.
        """
        frames = self.transform.signal(real, imaginary) * self.weights
        frames = torch.cat((overlap, nn.functional.pad(frames, (_PAD, _PAD))), 1)
        # Block j is the last quarter of frame j - 1 and the first of frame j + 2.
        parts = [
            rows[..., HOP * (SPAN - 1 - i) : HOP * (SPAN - i)]
            for i, rows in enumerate(_shifted(frames))
        ]
        return sum(parts[1:], parts[0]), frames[:, -(SPAN - 1) :]
