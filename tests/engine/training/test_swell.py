"""Noise that swells with the pulses of the voice."""

import math

import numpy as np
import pytest
import torch

from utterd.engine.training.network import Decoder, Shape
from utterd.engine.training.spectra import BINS, FastTransform
from utterd.engine.voices import small_frames
from utterd.engine.voices.small_stream import noise_table

BLOCKS = 400


def sound(f0: float, swell: complex) -> np.ndarray:
    """Samples of a decoder that says nothing but noise, in every band alike."""
    shape = Shape()
    decoder = Decoder(shape, FastTransform())
    with torch.no_grad():
        decoder.head.weight.zero_()
        parts = torch.split(decoder.head.bias, [BINS, BINS, BINS, 64, 64, 64])
        parts[0].fill_(-30)
        parts[3].zero_()
        parts[4].fill_(swell.real)
        parts[5].fill_(swell.imag)
    source = small_frames.source(np.full(BLOCKS + 6, f0))
    rows = np.arange(BLOCKS + 3)
    noise = small_frames.noise(noise_table(), rows, small_frames.shift(source[2:-1]))
    overlap, states = decoder.fresh(1, torch.device("cpu"))
    frames = BLOCKS + 2 * shape.halo + 3
    with torch.no_grad():
        samples, _, _ = decoder(
            torch.zeros(1, frames, shape.encoder),
            torch.zeros(1, frames, small_frames.FEATURES),
            torch.from_numpy(source)[None],
            torch.from_numpy(noise)[None],
            overlap,
            states,
        )
    return samples[0].numpy()


def powers(samples: np.ndarray, f0: float) -> np.ndarray:
    """Mean power in each eighth of a period; pulses stand in the middle of the first."""
    time = (np.arange(len(samples)) + 0.5) / small_frames.SAMPLE_RATE
    # Three blocks of the source lie before the first sample.
    phase = small_frames.source(np.array([f0]))[0, 0] + f0 * (time + 2.5 / 80)
    eighth = np.floor((phase % 1) * 8 + 0.5).astype(int) % 8
    return np.array([np.mean(samples[eighth == i] ** 2) for i in range(8)])


@pytest.mark.parametrize("f0", [93.75, 187.5, 250.0, 301.0])
@pytest.mark.parametrize("turn", [0.0, 0.25, 0.5])
def test_the_noise_is_loudest_where_it_is_told_to_be(f0: float, turn: float) -> None:
    swell = complex(0.8 * math.cos(2 * math.pi * turn), -0.8 * math.sin(2 * math.pi * turn))
    by_eighth = powers(sound(f0, swell), f0)
    assert by_eighth.argmax() == round(8 * turn) % 8
    assert by_eighth.max() > 4 * by_eighth.min()
