"""`fit`: teach the acoustic or the prosody network on corpora, from where the last run stopped."""

import argparse
import csv
import io
import json
import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from utterd.engine.training import checkpoint, dataset, plan
from utterd.engine.training.files import write_whole
from utterd.engine.training.network import SIZES, Acoustic
from utterd.engine.training.tasks import AcousticTask, ProsodyTask, Task

_WARM_STEPS = 300
_FLAT_STEPS = 3000
_AVERAGE = 0.998
_VALIDATED = 16
"""Items of the validation part that are looked at."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("what", choices=("acoustic", "prosody"))
    parser.add_argument("--corpus", type=Path, action="append", required=True, help="repeatable")
    parser.add_argument("--out", type=Path, required=True, help="folder of the fit")
    parser.add_argument("--size", choices=list(SIZES), default="small", help="of the network")
    parser.add_argument(
        "--begin",
        type=Path,
        help="folder of a fit whose best weights a new fit starts from, a large one from a small",
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after")
    parser.add_argument("--steps", type=int, help="stop at this step")
    parser.add_argument(
        "--anneal",
        type=int,
        default=0,
        help="let the rate fall to nothing over so many steps, then stop; for a copy of --out",
    )
    parser.add_argument(
        "--adversary",
        type=float,
        metavar="SHARE",
        help="teach an adversary beside the acoustic network, late, whose pull is so many times as "
        "strong as that of the losses; a checkpoint keeps it",
    )
    parser.add_argument(
        "--again", action="store_true", help="anneal although --out was, as far as it was to be"
    )
    parser.add_argument("--save-minutes", type=float, default=3.0, help="between checkpoints")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="a device of PyTorch")


def main(arguments: argparse.Namespace) -> int:
    """Fit; returns the exit status."""
    if arguments.device == "cpu":
        os.nice(19 - os.nice(0))
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    Fit(arguments).run()
    return 0


class Fit:
    """One network being taught."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._until = time.monotonic() + arguments.minutes * 60
        self._most = arguments.steps or 1 << 62
        self._save_seconds = arguments.save_minutes * 60
        self._out: Path = arguments.out
        self._path = self._out / f"{arguments.what}.pt"
        torch.manual_seed(arguments.seed)
        self._rng = np.random.default_rng(arguments.seed)
        device = torch.device(arguments.device)
        self._shape = SIZES[arguments.size]
        self._task: Task = (
            AcousticTask(self._shape, device)
            if arguments.what == "acoustic"
            else ProsodyTask(self._shape, device)
        )
        self._average = AveragedModel(self._task.network, avg_fn=_averaged)
        self._optimizer = torch.optim.AdamW(
            self._task.network.parameters(), self._task.rate, betas=(0.9, 0.98), weight_decay=0.01
        )
        self._step = 0
        self._seconds = 0.0
        self._best = float("inf")
        self._validated = ""
        """Which items chose the best so far."""
        self._corpora = [plan.summary(plan.load(f / "plan.json")) for f in arguments.corpus]
        self._curve: list[dict[str, float]] = []
        self._corpus = dataset.Corpus(arguments.corpus)
        if arguments.what == "acoustic" and any(c["silent"] for c in self._corpora):
            raise ValueError("a silent corpus is for `fit prosody` only")
        self._anneal: tuple[int, int] | None = None
        """First step and number of steps of the annealing."""
        if self._path.exists():
            self._resume(checkpoint.load(self._path))
        elif arguments.begin:
            path = arguments.begin / f"{arguments.what}-best.pt"
            self._begin(checkpoint.load(path), arguments.begin)
        if arguments.adversary:
            self._contest(arguments.adversary)
        is_over = self._anneal is not None and self._step >= sum(self._anneal)
        if arguments.anneal and (self._anneal is None or (arguments.again and is_over)):
            self._anneal = (self._step, arguments.anneal)
        if self._anneal:
            self._most = min(self._most, sum(self._anneal))

    def _contest(self, share: float) -> None:
        if not isinstance(self._task, AcousticTask):
            raise ValueError("only `fit acoustic` has an adversary")
        self._task.contest(share)

    def run(self) -> None:
        """Take steps until the time or the steps are over."""
        saved = time.monotonic()
        recent: list[dict[str, float]] = []
        bar = tqdm(initial=self._step, unit="step", desc=self._path.stem, mininterval=5)
        with bar:
            while self._step < self._most and time.monotonic() < self._until:
                recent.append(self._advance())
                bar.update()
                if time.monotonic() - saved > self._save_seconds:
                    self._seconds += time.monotonic() - saved
                    self._checkpoint(recent)
                    bar.set_postfix(self._curve[-1])
                    self._corpus.refresh()
                    recent, saved = [], time.monotonic()
            if recent:
                self._seconds += time.monotonic() - saved
                self._checkpoint(recent)

    def _advance(self) -> dict[str, float]:
        self._task.network.train()
        for group in self._optimizer.param_groups:
            group["lr"] = self._task.rate * self._factor()
        losses = self._task.losses(self._corpus.train, self._rng)
        self._optimizer.zero_grad()
        losses["total"].backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._task.network.parameters(), 3.0)
        self._optimizer.step()
        self._average.update_parameters(self._task.network)
        self._step += 1
        return {name: float(value.detach()) for name, value in losses.items()}

    def _checkpoint(self, recent: list[dict[str, float]]) -> None:
        """Validate the averaged weights, keep them if they are the best so far, and save all."""
        network = self._average.module
        network.eval()
        items = self._corpus.validation[:_VALIDATED]
        if (measure := dataset.digest(items)) != self._validated:  # a corpus more, or a grown one
            self._best, self._validated = float("inf"), measure
        with torch.no_grad():
            validated = self._task.validate(network, items)
        row = {
            "step": float(self._step),
            "hours": round(self._seconds / 3600, 4),
            "speech_hours": round(dataset.hours(self._corpus.train), 3),
            "rate": self._task.rate * self._factor(),
        }
        row |= {f"train_{n}": float(np.mean([r[n] for r in recent])) for n in recent[0]}
        row |= {f"valid_{n}": value for n, value in validated.items()}
        self._curve.append({name: round(value, 6) for name, value in row.items()})
        # An adversary trades distance for likeness: there the last weights are kept.
        if validated["total"] < self._best or self._task.state() is not None:
            self._best = validated["total"]
            weights = {
                "shape": self._shape.to_json(),
                "step": self._step,
                "curve": self._curve,
                "corpora": self._corpora,
                "adversary": (self._task.state() or {"share": 0.0})["share"],
                "anneal": self._anneal,
            }
            best = self._path.with_name(f"{self._path.stem}-best.pt")
            checkpoint.save(best, weights | {"network": network.state_dict()})
        checkpoint.save(self._path, self._state())
        self._write_curve()

    def _state(self) -> dict[str, Any]:
        return {
            "shape": self._shape.to_json(),
            "network": self._task.network.state_dict(),
            "average": self._average.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "random": checkpoint.random_state(self._rng),
            "step": self._step,
            "seconds": self._seconds,
            "best": self._best,
            "validated": self._validated,
            "curve": self._curve,
            "anneal": self._anneal,
            "task": self._task.state(),
        }

    def _factor(self) -> float:
        """The factor on the peak rate at this step."""
        if self._anneal is None:
            return _schedule(self._step)
        first, steps = self._anneal
        return _schedule(self._step) * (1 - (self._step - first) / steps)

    def _begin(self, content: dict[str, Any], folder: Path) -> None:
        """Take the weights of another fit: a further speaker is learnt sooner, and a larger size.

        Blocks that a smaller decoder lacks begin by changing nothing.
        """
        theirs = checkpoint.shape(content)
        if (
            replace(theirs, decoder_blocks=self._shape.decoder_blocks) != self._shape
            or theirs.decoder_blocks > self._shape.decoder_blocks
        ):
            raise ValueError("the fit to begin with holds a network of other sizes: leave it out")
        for network in (self._task.network, self._average.module):
            checkpoint.fill(network, content, folder, part=theirs != self._shape)
            if isinstance(network, Acoustic):
                network.decoder.deepen(theirs.decoder_blocks)

    def _resume(self, content: dict[str, Any]) -> None:
        if checkpoint.shape(content) != self._shape:
            raise ValueError(
                f"{self._path} holds a network of other sizes: choose another --out folder"
            )
        checkpoint.fill(self._task.network, content, self._path)
        self._average.load_state_dict(content["average"])
        self._optimizer.load_state_dict(content["optimizer"])
        self._task.restore(content.get("task"))
        checkpoint.restore_random_state(self._rng, content["random"])
        self._step = content["step"]
        self._seconds = content["seconds"]
        self._best = content["best"]
        self._validated = content["validated"]
        self._curve = content["curve"]
        self._anneal = content["anneal"]

    def _write_curve(self) -> None:
        stem = self._path.stem
        write_whole(self._out / f"{stem}-curve.json", json.dumps(self._curve).encode())
        table = io.StringIO()
        names = dict.fromkeys(name for row in self._curve for name in row)
        writer = csv.DictWriter(table, list(names))
        writer.writeheader()
        writer.writerows(self._curve)
        write_whole(self._out / f"{stem}-curve.csv", table.getvalue().encode())


def _schedule(step: int) -> float:
    """Return the factor on the peak rate: up in a line, level, then down as 1 / sqrt(step)."""
    return min(1.0, (step + 1) / _WARM_STEPS) * min(1.0, math.sqrt(_FLAT_STEPS / (step + 1)))


def _averaged(average: torch.Tensor, new: torch.Tensor, count: torch.Tensor | int) -> torch.Tensor:
    """Move the average towards the new weights, faster while there are few."""
    keep = min(_AVERAGE, (1 + float(count)) / (10 + float(count)))
    return average * keep + new * (1 - keep)
