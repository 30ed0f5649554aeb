"""An adversary: small networks that learn to tell the student's spectra from the teacher's.

A distance of spectra is least for the mean of what the teacher might have said, which sounds dull;
whoever can tell the mean from the real thing shows the student what is missing. It joins late,
when the distance alone has done its work, and is small enough for a step on a CPU: two
resolutions, a few crops of the batch, its share in the student's gradient held at a fixed part of
the distance's, so that there is nothing to balance.
"""

from typing import Any

import torch
from torch import Tensor, nn

from utterd.engine.training import losses

_SIZES = (2048, 512)
_CROPS = 3
"""Crops of a batch that are judged."""
_CHANNELS = 16
_RATE = 1e-3
_WARM_STEPS = 300
"""The adversary's share grows over so many steps, while it learns the first differences."""
_MATCHING = 2.0
"""Weight of matching the inner features beside convincing the adversary."""


class Judge(nn.Module):
    """Log magnitudes (B, F, T) to a map of opinions, and what it saw on the way."""

    def __init__(self) -> None:
        super().__init__()
        c = _CHANNELS
        self.layers = nn.ModuleList([
            nn.Conv2d(1, c, (9, 3), (4, 1), (4, 1)),
            nn.Conv2d(c, c, (9, 3), (3, 1), (4, 1)),
            nn.Conv2d(c, 2 * c, (5, 3), (3, 2), (2, 1)),
            nn.Conv2d(2 * c, 2 * c, 3, 1, 1),
        ])  # fmt: skip
        self.opinion = nn.Conv2d(2 * c, 1, 3, 1, 1)

    def forward(self, spectrum: Tensor) -> list[Tensor]:
        """Return the output of every layer, the opinions last."""
        x = spectrum[:, None]
        seen = []
        for layer in self.layers:
            x = nn.functional.leaky_relu(layer(x), 0.1)
            seen.append(x)
        return [*seen, self.opinion(x)]


class Adversary:
    """Judges at several resolutions, with their own optimizer.

    Args:
        device: where they are.
        share: norm of their gradient at the samples, over the norm of the other losses' gradient.
    """

    def __init__(self, device: torch.device, share: float) -> None:
        self.share = share
        self._judges = nn.ModuleList(Judge() for _ in _SIZES).to(device)
        self._optimizer = torch.optim.AdamW(
            self._judges.parameters(), _RATE, betas=(0.8, 0.98), weight_decay=0.01
        )
        self._steps = 0

    def pull(self, heard: Tensor, wanted: Tensor, distance: Tensor) -> tuple[Tensor, Tensor]:
        """Learn from a batch, and say in which direction its sound should go.

        Args:
            heard: (B, S), the student's samples.
            wanted: (B, S), the teacher's.
            distance: (B, S), the gradient of the other losses at `heard`.

        Returns:
            The gradient to add to `distance`, (B, S), and how well the teacher is told from the
            student: 0.25 is not at all, 0 without a fault.
        """
        crops = torch.randperm(len(heard))[:_CROPS]
        ours = heard.detach()[crops].requires_grad_()
        our_spectra = [losses.log_magnitude(ours, size) for size in _SIZES]
        their_spectra = [losses.log_magnitude(wanted[crops], size) for size in _SIZES]
        told = self._learn([s.detach() for s in our_spectra], their_spectra)
        gradient = torch.zeros_like(heard)
        loss = self._reproach(our_spectra, their_spectra)
        (gradient[crops],) = torch.autograd.grad(loss, ours)
        self._steps += 1
        share = self.share * min(1.0, self._steps / _WARM_STEPS)
        size = torch.linalg.vector_norm(distance) / (torch.linalg.vector_norm(gradient) + 1e-12)
        return gradient * (share * size), told

    def _learn(self, ours: list[Tensor], theirs: list[Tensor]) -> Tensor:
        """Take a step towards 1 for the teacher and 0 for the student; returns the error."""
        error = torch.zeros((), device=ours[0].device)
        for judge, our, their in zip(self._judges, ours, theirs, strict=True):
            error = error + (
                (judge(their)[-1] - 1).square().mean() + judge(our)[-1].square().mean()
            )
        self._optimizer.zero_grad()
        error.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._judges.parameters(), 5.0)
        self._optimizer.step()
        return error.detach() / (2 * len(ours))

    def _reproach(self, ours: list[Tensor], theirs: list[Tensor]) -> Tensor:
        """Return how far the student is from passing for the teacher."""
        total = torch.zeros((), device=ours[0].device)
        for judge, our, their in zip(self._judges, ours, theirs, strict=True):
            seen = judge(our)
            with torch.no_grad():
                expected = judge(their)
            total = total + (seen[-1] - 1).square().mean()
            for a, b in zip(seen[:-1], expected[:-1], strict=True):
                matched = (a - b).abs().mean() / (b.abs().mean() + 1e-3)
                total = total + _MATCHING / len(seen) * matched
        return total

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        return {
            "judges": self._judges.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "steps": self._steps,
            "share": self.share,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self._judges.load_state_dict(state["judges"])
        self._optimizer.load_state_dict(state["optimizer"])
        for group in self._optimizer.param_groups:
            group["lr"] = _RATE
        self._steps = state["steps"]
        self.share = state["share"]
