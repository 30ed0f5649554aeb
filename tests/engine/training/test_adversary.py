"""The adversary learns to tell, and pulls the student towards the teacher."""

import torch

from utterd.engine.training.adversary import Adversary

CPU = torch.device("cpu")


def sounds(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise, and the same without its upper half: what a mean of spectra lacks."""
    wanted = 0.1 * torch.randn(count, 7200)
    spectrum = torch.fft.rfft(wanted)
    spectrum[:, 1800:] *= 0.1
    return torch.fft.irfft(spectrum, 7200), wanted


def test_it_learns_to_tell_dull_from_bright() -> None:
    torch.manual_seed(1)
    adversary = Adversary(CPU, 1.6)
    told = []
    for _ in range(25):
        heard, wanted = sounds(4)
        told.append(float(adversary.pull(heard, wanted, torch.ones_like(heard))[1]))
    assert told[-1] < 0.5 * told[0]


def test_its_pull_has_the_share_it_is_given_and_grows_from_nothing() -> None:
    torch.manual_seed(1)
    adversary = Adversary(CPU, 1.6)
    heard, wanted = sounds(4)
    distance = torch.randn_like(heard)
    sizes = [
        float(torch.linalg.vector_norm(adversary.pull(heard, wanted, distance)[0]))
        for _ in range(4)
    ]
    norm = float(torch.linalg.vector_norm(distance))
    for step, size in enumerate(sizes, 1):
        assert abs(size / norm - 1.6 * step / 300) < 1e-5


def test_who_follows_the_pull_gets_brighter() -> None:
    torch.manual_seed(1)
    adversary = Adversary(CPU, 1.6)
    for _ in range(25):
        heard, wanted = sounds(4)
        adversary.pull(heard, wanted, torch.ones_like(heard))
    heard, wanted = sounds(3)
    before = torch.fft.rfft(heard)[:, 1800:].abs().mean()
    pull, _ = adversary.pull(heard, wanted, torch.ones_like(heard))
    moved = heard - 0.5 * pull / pull.abs().max()
    assert torch.fft.rfft(moved)[:, 1800:].abs().mean() > before
    towards = (pull * (heard - wanted)).sum() / (pull.norm() * (heard - wanted).norm())
    assert towards > 0
