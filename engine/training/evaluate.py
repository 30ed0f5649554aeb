"""`evaluate`: a network beside its teacher on sentences it never heard."""

import argparse
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from utterd.engine.training import export, heldout, measures, plan, report, student, texts
from utterd.engine.training.dataset import Example
from utterd.engine.training.export import Networks
from utterd.engine.training.files import write_whole
from utterd.engine.voices.small_frames import HOP, SAMPLE_RATE

_SHOWN_EVERY = 8
"""Every eighth sentence is kept as sound and picture."""


class Scores(msgspec.Struct, frozen=True):
    """One sentence."""

    kind: str
    text: str
    teacher_overall: float
    teacher_p808: float
    own_overall: float
    own_p808: float
    """Student, all by itself."""
    copied_overall: float
    copied_p808: float
    """Student with the teacher's durations, F0 and energy."""
    mel_db: float
    """Mean difference of log-mel spectra, teacher's prosody."""
    visqol: float
    """MOS-LQO of ViSQOL, teacher's prosody."""
    f0_cents: float | None
    """RMS error of F0 where both are voiced; None where nothing is."""
    voicing: float
    """Share of frames voiced in one only."""
    duration_ms: float
    """Mean absolute error of a phoneme's length."""
    length: float
    """Student's length of the sentence over the teacher's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    parser.add_argument("--fit", type=Path, required=True, help="folder of the fit")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of its (first) corpus")
    parser.add_argument("--teacher", type=Path, required=True, help="folder of the teacher")
    parser.add_argument("--out", type=Path, required=True, help="folder of the report")
    parser.add_argument("--every", type=int, default=1, help="take every nth sentence only")


def main(arguments: argparse.Namespace) -> int:
    """Evaluate; returns the exit status."""
    os.nice(19 - os.nice(0))
    torch.set_num_threads(1)
    planned = plan.load(arguments.corpus / "plan.json")
    networks, recipe = export.best(arguments.fit)
    sentences, examples = heldout_part(arguments, planned)
    done = _Done(arguments.out / f"scores-{_digest(networks)}-{arguments.every}.json")
    shown = arguments.out / "shown"
    shown.mkdir(exist_ok=True)
    todo = zip(sentences, examples, strict=True)
    for number, (sentence, example) in enumerate(tqdm(list(todo), desc="student", unit="sentence")):
        if number == len(done.scores):
            spoken = student.say(networks, example)
            done.add(_score(sentence, example, spoken))
            if number % _SHOWN_EVERY == 0:
                report.show(shown, number, sound(example), spoken)
    report.write(arguments.out, summary(done.scores), done.scores, recipe)
    return 0


def heldout_part(
    arguments: argparse.Namespace, planned: plan.Plan
) -> tuple[list[texts.HeldOut], list[Example]]:
    """Return every nth held-out sentence and the teacher's reading of it."""
    numbered = list(enumerate(texts.held_out()))[:: arguments.every]
    cache = arguments.out / f"teacher-{planned.speaker}"
    examples = heldout.render(
        numbered, planned.vocabulary, planned.speaker, arguments.teacher, cache
    )
    return [sentence for _, sentence in numbered], examples


def summary(scores: list[Scores]) -> dict[str, dict[str, float]]:
    """Return the means of each kind of sentence, and of all."""
    kinds = {"all": scores}
    for score in scores:
        kinds.setdefault(score.kind, []).append(score)
    return {
        kind: {"sentences": float(len(of_kind))} | dict(_means(of_kind))
        for kind, of_kind in kinds.items()
        if of_kind
    }


class _Done:
    """Scores so far, kept on disk after every sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.scores = (
            msgspec.json.decode(path.read_bytes(), type=list[Scores]) if path.exists() else []
        )

    def add(self, scores: Scores) -> None:
        self.scores.append(scores)
        write_whole(self._path, msgspec.json.encode(self.scores))


def _score(sentence: texts.HeldOut, example: Example, spoken: student.Spoken) -> Scores:
    teacher = sound(example)
    theirs, own, copied = (measures.dnsmos_scores(s) for s in (teacher, spoken.own, spoken.copied))
    cents, voicing = measures.f0_error(spoken.f0, example.f0)
    inner = slice(1, -1)  # the pads are not speech
    truth = np.diff(example.ends, prepend=0)
    frame_ms = HOP / SAMPLE_RATE * 1000
    return Scores(
        sentence.kind,
        sentence.text,
        theirs.overall,
        theirs.p808,
        own.overall,
        own.p808,
        copied.overall,
        copied.p808,
        measures.mel_distance(spoken.copied, teacher),
        measures.visqol_score(spoken.copied, teacher),
        None if np.isnan(cents) else cents,
        voicing,
        float(np.abs(spoken.durations - truth)[inner].mean() * frame_ms),
        len(spoken.own) / len(teacher),
    )


def _means(scores: list[Scores]) -> Iterator[tuple[str, float]]:
    for name in Scores.__struct_fields__[2:]:
        values = [v for v in (getattr(s, name) for s in scores) if v is not None]
        yield name, round(float(np.mean(values)), 4) if values else float("nan")


def sound(example: Example) -> NDArray[np.float32]:
    """Return an example's samples, -1 to 1."""
    return np.asarray(example.audio.astype(np.float32) / 32767, np.float32)


def _digest(networks: Networks) -> str:
    """Name what was scored and how: the weights, and the measures."""
    digest = hashlib.sha256("".join(Scores.__struct_fields__).encode())
    for network in (networks.acoustic, networks.prosody):
        for _, tensor in sorted(network.state_dict().items()):
            digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()[:12]
