"""`corpus`: texts to the teacher's speech, in shards that survive a kill at any moment."""

import argparse
import ctypes
import multiprocessing
import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from tqdm import tqdm

from utterd.engine.training import plan as plans
from utterd.engine.training import shards, texts
from utterd.engine.training.teacher import Teacher

_PR_SET_PDEATHSIG = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--out", type=Path, required=True, help="folder of the corpus")
    parser.add_argument(
        "--teacher", type=Path, required=True, help="folder with model.onnx, vocab.json, voices/"
    )
    parser.add_argument("--speaker", default="zf_xiaoxiao", help="the teacher's voice")
    parser.add_argument("--data", type=Path, help="folder of further texts (text/, zh/)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--speeds",
        type=float,
        nargs=2,
        default=(1.0, 1.0),
        metavar=("LOW", "HIGH"),
        help="the teacher's speed; other than 1 for corpora that only `fit acoustic` is given",
    )
    parser.add_argument(
        "--silent",
        action="store_true",
        help="durations, F0 and energy without sound, for `fit prosody`; a fifteenth of the time",
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--hours", type=float, help="stop at about this much speech")


def main(arguments: argparse.Namespace) -> int:
    """Render what is missing; returns the exit status."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    plan = _plan(arguments)
    present = shards.find(arguments.out)
    seconds = sum(shards.seconds(path) for path in present.values())
    limit = float("inf") if arguments.hours is None else arguments.hours * 3600
    numbers = [n for n in range(-(-len(plan.items) // shards.ITEMS)) if n not in present]
    bar = tqdm(
        initial=round(seconds),
        total=None if arguments.hours is None else round(limit),
        unit="s",
        desc=f"speech ({len(plan.items)} items planned)",
        mininterval=2,
    )
    with bar, _pool(arguments) as pool:
        waiting: set[Future[float]] = set()
        while (numbers or waiting) and seconds < limit:
            while numbers and len(waiting) < 2 * arguments.workers:
                waiting.add(pool.submit(_render, numbers.pop(0)))
            done = next(as_completed(waiting))
            waiting.remove(done)
            seconds += done.result()
            bar.update(round(seconds) - bar.n)
        pool.shutdown(cancel_futures=True)
    return 0


def _plan(arguments: argparse.Namespace) -> plans.Plan:
    path = arguments.out / "plan.json"
    if path.exists():
        plan = plans.load(path)
        asked = (arguments.seed, arguments.speaker, tuple(arguments.speeds), arguments.silent)
        if (plan.seed, plan.speaker, plan.speeds, plan.silent) != asked:
            raise ValueError(
                f"{path} was made with seed {plan.seed}, speaker {plan.speaker}, speeds"
                f" {plan.speeds} and {'no ' if plan.silent else ''}sound: use those, or another"
                " folder"
            )
        return plan
    sentences = tqdm(texts.candidates(arguments.data, arguments.seed), desc="reading", unit="text")
    speeds = (arguments.speeds[0], arguments.speeds[1])
    plan = plans.make(
        sentences,
        arguments.teacher,
        arguments.speaker,
        arguments.seed,
        speeds=speeds,
        silent=arguments.silent,
    )
    plans.save(path, plan)
    return plan


def _pool(arguments: argparse.Namespace) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        arguments.workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(arguments.out, arguments.teacher, arguments.speaker, os.getpid()),
    )


class _Worker:
    """What a worker process keeps between shards."""

    plan: plans.Plan
    teacher: Teacher
    out: Path


def _begin(out: Path, teacher: Path, speaker: str, parent: int) -> None:
    """Load the teacher, politely, in a process that ends with its parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(19)
    _Worker.plan = plans.load(out / "plan.json")
    _Worker.teacher = Teacher(teacher, speaker, silent=_Worker.plan.silent)
    _Worker.out = out


def _render(number: int) -> float:
    """Render one shard; returns its seconds of speech."""
    first = number * shards.ITEMS
    items = []
    for index in range(first, min(first + shards.ITEMS, len(_Worker.plan.items))):
        tokens = np.array(_Worker.plan.tokens(index), np.int16)
        items.append(
            shards.taught(index, tokens, _Worker.teacher.speak(tokens, _Worker.plan.speed(index)))
        )
    return shards.seconds(shards.write(_Worker.out, number, items))
