import math

import pytest
import torch

from utterd.engine.training import spectra
from utterd.engine.training.spectra import FastTransform, MatrixTransform


def test_matrices_do_what_the_fft_does() -> None:
    torch.manual_seed(0)
    fast, matrices = FastTransform(), MatrixTransform()
    frames = torch.randn(2, 5, spectra.FFT)
    for wanted, got in zip(fast.spectrum(frames), matrices.spectrum(frames), strict=True):
        torch.testing.assert_close(got, wanted, atol=2e-4, rtol=0)
    real, imaginary = torch.randn(2, 5, spectra.BINS), torch.randn(2, 5, spectra.BINS)
    torch.testing.assert_close(
        matrices.signal(real, imaginary), fast.signal(real, imaginary), atol=1e-6, rtol=1e-5
    )


def test_a_cosine_of_amplitude_one_peaks_at_one() -> None:
    time = torch.arange(3000) / spectra.SAMPLE_RATE
    wave = torch.cos(2 * math.pi * 3000 * time).view(1, 10, spectra.HOP)
    real, imaginary = spectra.Analysis(FastTransform())(wave)
    peak = torch.hypot(real, imaginary).amax(-1)
    torch.testing.assert_close(peak, torch.ones_like(peak), atol=1e-3, rtol=0)


def test_synthesis_gives_back_what_analysis_took_apart() -> None:
    time = torch.arange(6000) / spectra.SAMPLE_RATE
    wave = 0.5 * torch.cos(2 * math.pi * 441 * time) + 0.3 * torch.sin(2 * math.pi * 5003 * time)
    blocks = wave.view(1, 20, spectra.HOP)
    transform = FastTransform()
    real, imaginary = spectra.Analysis(transform)(blocks)
    back, _ = spectra.Synthesis(transform)(real, imaginary, torch.zeros(1, 0, 1200))
    torch.testing.assert_close(back, blocks[:, 3:17], atol=2e-3, rtol=0)


@pytest.mark.parametrize("f0", [61.0, 147.3, 210.0, 399.9])
def test_the_pulse_train_is_the_sum_of_its_harmonics(f0: float) -> None:
    per_block = f0 / 80
    phase = 0.3 + per_block * torch.arange(4, dtype=torch.float64)
    source = torch.zeros(1, 4, 4)
    source[..., 0] = phase % 1
    source[..., 1:3] = per_block
    source[..., 3] = 1
    got = spectra.PulseTrain()(source).flatten().double()
    place = (torch.arange(1200, dtype=torch.float64) + 0.5) / 300 - 0.5
    cycles = 0.3 + per_block * place
    limit = spectra.TOP_HZ / f0
    wanted = sum(
        min(1.0, limit - h + 1) * torch.cos(2 * math.pi * h * cycles)
        for h in range(1, math.ceil(limit) + 1)
    )
    torch.testing.assert_close(got, torch.as_tensor(wanted), atol=0.02, rtol=0)


def test_the_pulse_train_is_silent_where_unvoiced() -> None:
    source = torch.tensor([[[0.2, 0.1, 2.0, 0.0], [0.4, 2.0, 2.0, 1.0]]])
    blocks = spectra.PulseTrain()(source)[0]
    assert blocks[0].abs().max() == 0
    assert blocks[1].abs().max() > 1
