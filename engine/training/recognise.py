"""`recognise`: how much of the held-out sentences is understood, of teacher and student."""

import argparse
import json
import os
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from utterd.engine.frontend.reader import Reader
from utterd.engine.training import evaluate, export, hearing, plan, student
from utterd.engine.training.files import write_whole
from utterd.engine.training.hearing import Heard
from utterd.engine.training.recognisers import Ear, Scribe
from utterd.engine.voices.small_frames import SAMPLE_RATE

_CACHE = Path.home() / ".cache" / "utterd-recognisers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    evaluate.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Listen; writes `recognised.json` beside the report. Returns the exit status."""
    os.nice(19 - os.nice(0))
    torch.set_num_threads(1)
    planned = plan.load(arguments.corpus / "plan.json")
    networks, _ = export.best(arguments.fit)
    sentences, examples = evaluate.heldout_part(arguments, planned)
    listener = Listener()
    found: list[Heard] = []
    everything = list(zip(sentences, examples, strict=True))
    for sentence, example in tqdm(everything, desc="listening", unit="sentence"):
        spoken = student.say(networks, example)
        sounds = {
            "teacher": evaluate.sound(example), "own": spoken.own, "copied": spoken.copied,
        }  # fmt: skip
        for speaker, samples in sounds.items():
            found.append(listener.hear(sentence.kind, sentence.text, speaker, samples))
    content = {"rates": hearing.rates(found), "sentences": msgspec.to_builtins(found)}
    written = json.dumps(content, indent=1, ensure_ascii=False)
    write_whole(arguments.out / "recognised.json", written.encode())
    print(json.dumps(content["rates"], indent=1))
    return 0


class Listener:
    """Both recognisers, each for what it can."""

    def __init__(self) -> None:
        self._scribe, self._ear, self._reader = Scribe(_CACHE), Ear(), Reader()

    def hear(self, kind: str, text: str, speaker: str, samples: NDArray[np.float32]) -> Heard:
        """Count what gets through of a text of a kind (`zh`, `en`, `mixed`), samples at 24 kHz.

        They are heard in silence, as from a speaker: Whisper mishears what a file begins with.
        """
        samples = np.pad(samples, SAMPLE_RATE // 5)
        if kind == "en":
            phones, wanted = self._ear.phones(samples), self._ear.expected(text)
            wrong = hearing.errors(phones, wanted)
            return Heard(kind, text, speaker, " ".join(phones), len(wanted), wrong, wrong)
        heard = self._scribe.write(samples)
        units = hearing.syllables if kind == "zh" else hearing.phonemes
        ours, wanted = (units(self._reader, t) for t in (heard, text))
        toneless = [[u.rstrip("12345") for u in part] for part in (ours, wanted)]
        return Heard(
            kind,
            text,
            speaker,
            heard,
            len(wanted),
            hearing.errors(ours, wanted),
            hearing.errors(*toneless),
        )
