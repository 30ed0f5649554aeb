"""`export`: a voice package from the best weights of a fit."""

import argparse
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from utterd.engine.training import checkpoint, dataset, graphs, plan
from utterd.engine.training.dataset import Example
from utterd.engine.training.network import KERNEL, Acoustic, Prosody, Shape
from utterd.engine.training.quantise import ranges
from utterd.engine.voices import package
from utterd.engine.voices.small import Network
from utterd.engine.voices.small_frames import SAMPLE_RATE

_EXAMPLES = 100
"""Items of the corpora, a few minutes of speech."""
_RECIPE = ("step", "corpora", "adversary", "anneal", "curve")
_ORIGIN = "distilled from Kokoro-82M v1.0 (hexgrad, Apache-2.0), speaker {speaker}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--fit", type=Path, required=True, help="folder of the fit")
    parser.add_argument(
        "--corpus",
        type=Path,
        required=True,
        action="append",
        help="repeatable: a corpus it learnt from; what they need is what the 8 bits can hold",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the voice")
    parser.add_argument(
        "--pace",
        type=float,
        default=1.0,
        help="factor on all durations: 1 / `length` of `evaluate`, where that is not 1",
    )
    parser.add_argument("--name", default="small", help="name of the voice")


def main(arguments: argparse.Namespace) -> int:
    """Export; returns the exit status."""
    planned = plan.load(arguments.corpus[0] / "plan.json")
    networks, recipe = best(arguments.fit)
    share = -(-_EXAMPLES // len(arguments.corpus))
    examples = [e for folder in arguments.corpus for e in dataset.first(folder, share)]
    recipe["pace"] = arguments.pace
    write(arguments.out, arguments.name, networks, planned, recipe=recipe, examples=examples)
    return 0


@dataclass(frozen=True, slots=True)
class Networks:
    """What a voice is made of."""

    acoustic: Acoustic
    prosody: Prosody
    shape: Shape


def best(folder: Path) -> tuple[Networks, dict[str, Any]]:
    """Return the best networks of a fit, and how they came about.

    Raises:
        FileNotFoundError: one of the two was never fitted.
        ValueError: by an earlier release.
    """
    contents = {n: checkpoint.load(folder / f"{n}-best.pt") for n in ("acoustic", "prosody")}
    shape = checkpoint.shape(contents["acoustic"])
    acoustic, prosody = Acoustic(shape), Prosody(checkpoint.shape(contents["prosody"]))
    checkpoint.fill(acoustic, contents["acoustic"], folder)
    checkpoint.fill(prosody, contents["prosody"], folder)
    recipe = {
        name: {key: content[key] for key in _RECIPE if key in content}
        for name, content in contents.items()
    }
    networks = Networks(acoustic.eval(), prosody.eval(), shape)
    return networks, recipe | {"shape": shape.to_json()}


def write(
    folder: Path,
    name: str,
    networks: Networks,
    planned: plan.Plan,
    *,
    recipe: dict[str, Any],
    examples: Sequence[Example],
) -> package.VoicePackage:
    """Write the package; a folder of that name is replaced when all is there.

    What `examples` need is what the 8 bits of the graphs can hold.
    """
    unfinished = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    acoustic, prosody, shape = networks.acoustic, networks.prosody, networks.shape
    seen = ranges(acoustic, prosody, shape, examples)
    with torch.no_grad():
        path, pace = unfinished / "encode.onnx", recipe["pace"]
        graphs.write_encode(path, acoustic, prosody, seen, pace=pace)
        graphs.write_decode(unfinished / "decode.onnx", acoustic, shape, seen)
    looks = acoustic.encoder.dilations, prosody.phonemes.dilations
    network = Network(
        planned.vocabulary,
        hidden=shape.encoder,
        state=shape.decoder,
        reach=max(sum(dilations) for dilations in looks) * (KERNEL // 2),
    )
    (unfinished / "network.json").write_bytes(msgspec.json.encode(network))
    (unfinished / "recipe.json").write_text(json.dumps(recipe, indent=1), "utf-8")
    manifest = package.Manifest(
        format=package.FORMAT,
        name=name,
        kind="small",
        languages=("zh", "en"),
        sample_rate=SAMPLE_RATE,
        licence="Apache-2.0",
        origin=_ORIGIN.format(speaker=planned.speaker),
        phonemes="kokoro",
        timings="exact",
        speakers=(planned.speaker,),
        default_speaker=planned.speaker,
        files=package.describe_files(unfinished),
    )
    package.write(unfinished, manifest)
    if folder.exists():
        shutil.rmtree(folder)
    unfinished.rename(folder)
    return package.read(folder)
