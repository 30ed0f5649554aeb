"""The network: phonemes to hidden states and prosody, frames to samples.

Shapes: B batch, P phonemes, T frames of 12.5 ms, C channels; (B, T, C) everywhere but inside the
depthwise convolutions.
"""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from utterd.engine.training.spectra import (
    BINS,
    FFT,
    SAMPLE_RATE,
    Analysis,
    FastTransform,
    PulseTrain,
    Synthesis,
    Transform,
)
from utterd.engine.voices.small_frames import POSITION

KERNEL = 7
POINTS = 4
"""Places in a phoneme at which F0, voicing and energy are predicted."""
FEATURES = 5
"""Of a frame: F0, voiced, energy, place in the phoneme, inside the segment."""
_NOISE_BANDS = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a network."""

    symbols: int = 178
    encoder: int = 192
    encoder_inner: int = 512
    encoder_blocks: int = 4
    prosody: int = 256
    prosody_inner: int = 512
    prosody_dilations: tuple[int, ...] = (1, 1, 2, 4, 2, 1)
    decoder: int = 256
    decoder_inner: int = 512
    decoder_blocks: int = 6

    @property
    def halo(self) -> int:
        """Frames the decoder looks at on either side of a spectral frame."""
        return self.decoder_blocks * (KERNEL // 2)

    def to_json(self) -> dict[str, object]:
        """Return the sizes as plain values."""
        return asdict(self)


SIZES = {"small": Shape(), "large": Shape(decoder_blocks=10)}
"""Of voices, by name."""


class Block(nn.Module):
    """Depthwise convolution, then a per-frame perceptron, around a residual; `valid` in time."""

    mixed = False
    """Whether the perceptron is taught in bfloat16 (its weights and all else stay float32)."""

    def __init__(self, channels: int, inner: int, dilation: int = 1) -> None:
        super().__init__()
        self.reach = dilation * (KERNEL // 2)
        self.mix = nn.Conv1d(channels, channels, KERNEL, groups=channels, dilation=dilation)
        self.norm = nn.LayerNorm(channels)
        self.up = nn.Linear(channels, inner)
        self.down = nn.Linear(inner, channels)
        self.gain = nn.Parameter(torch.full((channels,), 0.3))

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, C) to (B, T - 2 reach, C)."""
        y = self.norm(self.mix(x.transpose(1, 2)).transpose(1, 2))
        with torch.autocast(y.device.type, torch.bfloat16, enabled=self.mixed and self.training):
            y = self.down(nn.functional.gelu(self.up(y)))
        y = y * self.gain
        out: Tensor = x[:, self.reach : -self.reach] + y
        return out


class Phonemes(nn.Module):
    """Phoneme ids to a vector each, with their neighbourhood and their position seen."""

    def __init__(
        self, symbols: int, channels: int, inner: int, dilations: tuple[int, ...], dropout: float
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, channels)
        self.position = nn.Linear(POSITION, channels, bias=False)
        self.blocks = nn.ModuleList(Block(channels, inner, d) for d in dilations)
        self.dilations = dilations
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(channels)

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        """Map ids (B, P) to (B, P, C).

        `position` is (B, P, POSITION), see `small_frames.position`; 0 on padding.
        """
        inside = position[..., -1:]
        x = (self.embed(tokens) + self.position(position)) * inside
        for block, dilation in zip(self.blocks, self.dilations, strict=True):
            reach = dilation * (KERNEL // 2)
            padded = nn.functional.pad(x, (0, 0, reach, reach))
            x = self.dropout(block(padded)) * inside
        normed: Tensor = self.norm(x)
        return normed * inside


class Prosody(nn.Module):
    """Phonemes to durations in frames and to F0, voicing and energy at four points of each."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.phonemes = Phonemes(
            shape.symbols, shape.prosody, shape.prosody_inner, shape.prosody_dilations, 0.1
        )
        self.head = nn.Linear(shape.prosody, 1 + 3 * POINTS)

    def forward(self, tokens: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        """Return durations (B, P) in frames and contour (B, P, POINTS, 3).

        The contour holds log2(F0 / 200 Hz), a logit of voicing, and energy / 8.
        """
        durations, contour = self.read(self.head(self.phonemes(tokens, position)))
        return durations * position[..., -1], contour

    @staticmethod
    def read(out: Tensor) -> tuple[Tensor, Tensor]:
        """Return durations and contour of the head's outputs (B, P, 1 + 3 POINTS)."""
        durations = nn.functional.softplus(out[..., 0] + 4)
        return durations, out[..., 1:].reshape(out.shape[0], out.shape[1], POINTS, 3)


class Decoder(nn.Module):
    """Frames to samples: convolution blocks, then a source-filter head.

    Speech = pulse train x predicted magnitude and rotation + noise x predicted magnitude, per bin
    of a short-time spectrum.
    """

    bands: Tensor

    def __init__(self, shape: Shape, transform: Transform) -> None:
        super().__init__()
        self.enter = nn.Linear(shape.encoder + FEATURES, shape.decoder)
        self.blocks = nn.ModuleList(
            Block(shape.decoder, shape.decoder_inner) for _ in range(shape.decoder_blocks)
        )
        self.norm = nn.LayerNorm(shape.decoder)
        self.head = nn.Linear(shape.decoder, 3 * BINS + _NOISE_BANDS)
        self.pulses = PulseTrain()
        self.analysis = Analysis(transform)
        self.synthesis = Synthesis(transform)
        self.register_buffer("bands", _noise_bands(), persistent=False)
        with torch.no_grad():
            self.head.weight *= 0.3
            magnitude, turn_real, turn_imaginary, noise = torch.split(
                self.head.bias, [BINS, BINS, BINS, _NOISE_BANDS]
            )
            magnitude.fill_(-4)
            turn_real.fill_(1)
            turn_imaginary.zero_()
            noise.fill_(-8)

    def forward(  # noqa: PLR0917 - the inputs of a graph stand in an order
        self,
        hidden: Tensor,
        features: Tensor,
        source: Tensor,
        noise: Tensor,
        overlap: Tensor,
        states: list[Tensor],
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Make the samples of m blocks from the first call's (or a later call's) inputs.

        Args:
            hidden: (B, m + 39, C) first, (B, m, C) later: phoneme vectors of the frames.
            features: likewise, (.., FEATURES).
            source: (B, m + 6 or m + 3, 4), see `PulseTrain`.
            noise: (B, m + 3 or m, 2, F) of the spectral frames: Gaussian, variance 1/2 each part.
            overlap: (B, 0 or 3, 1200).
            states: for each block (B, 0 or 6, C).

        Returns:
            Samples (B, 300 m), and `overlap` and `states` for the next call.
        """
        x = self.enter(torch.cat((hidden, features), -1))
        kept = []
        for block, state in zip(self.blocks, states, strict=True):
            x = torch.cat((state, x), 1)
            kept.append(x[:, -2 * (KERNEL // 2) :])
            x = block(x)
        log_magnitude, turn_real, turn_imaginary, log_noise = torch.split(
            self.head(self.norm(x)), [BINS, BINS, BINS, _NOISE_BANDS], -1
        )
        pulse_real, pulse_imaginary = self.analysis(self.pulses(source))
        size = torch.rsqrt(turn_real.square() + turn_imaginary.square() + 1e-6)
        gain = torch.exp(log_magnitude.clamp(max=4)) * size
        gain_real, gain_imaginary = gain * turn_real, gain * turn_imaginary
        noise_gain = torch.exp(log_noise.clamp(max=2) @ self.bands)
        real = pulse_real * gain_real - pulse_imaginary * gain_imaginary
        imaginary = pulse_real * gain_imaginary + pulse_imaginary * gain_real
        samples, overlap = self.synthesis(
            real + noise_gain * noise[:, :, 0], imaginary + noise_gain * noise[:, :, 1], overlap
        )
        return samples.flatten(1), overlap, kept

    def deepen(self, first: int) -> None:
        """Let the blocks from `first` on change nothing until they learn to."""
        for block in self.blocks[first:]:
            if isinstance(block, Block):  # a list of modules tells no more than that
                nn.init.zeros_(block.gain)

    def fresh(self, batch: int, device: torch.device) -> tuple[Tensor, list[Tensor]]:
        """Return the empty `overlap` and `states` that a first call takes."""
        channels = self.enter.out_features
        empty = [torch.zeros(batch, 0, channels, device=device) for _ in self.blocks]
        return torch.zeros(batch, 0, 1200, device=device), empty


class Acoustic(nn.Module):
    """Encoder and decoder, which learn together."""

    def __init__(self, shape: Shape, transform: Transform | None = None) -> None:
        super().__init__()
        self.encoder = Phonemes(
            shape.symbols,
            shape.encoder,
            shape.encoder_inner,
            (1,) * shape.encoder_blocks,
            dropout=0.0,
        )
        self.decoder = Decoder(shape, transform or FastTransform())


def _noise_bands() -> Tensor:
    """Return (bands, F): linear interpolation from bands evenly spaced in mel to bins."""
    bins = torch.arange(BINS, dtype=torch.float64) * (SAMPLE_RATE / FFT)
    mel = 1127 * torch.log1p(bins / 700)
    place = mel / mel[-1] * (_NOISE_BANDS - 1)
    rows = torch.arange(_NOISE_BANDS, dtype=torch.float64)[:, None]
    return (1 - (place[None] - rows).abs()).clamp(min=0).float()
