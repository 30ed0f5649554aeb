"""What is exported is the fit's, and its 8 bits hold what all of its corpora need."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from utterd.engine.training import export, plan, shards
from utterd.engine.training.teacher import Teacher
from utterd.engine.voices import package
from utterd.engine.voices.kokoro_symbols import SYMBOLS


def corpus(folder: Path, teacher: Path, tokens: list[int]) -> Path:
    folder.mkdir()
    plan.save(folder / "plan.json", plan.Plan(7, "zf_test", "0", SYMBOLS, []))
    ids = np.array([0, *tokens, 0], np.int16)
    said = Teacher(teacher, "zf_test").speak(ids)
    shards.write(folder, 0, [shards.taught(item, ids, said) for item in (6, 7)])
    return folder


def test_all_corpora_are_held(
    teacher: Path, fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lengths = export.ranges, []

    def ranges(acoustic, prosody, shape, examples):
        lengths.extend(example.length for example in examples)
        return real(acoustic, prosody, shape, examples)

    monkeypatch.setattr(export, "ranges", ranges)
    short = corpus(tmp_path / "short", teacher, [43, 44, 45])
    long = corpus(tmp_path / "long", teacher, [43, 44, 45] * 5)
    parser = argparse.ArgumentParser()
    export.add_arguments(parser)
    out = tmp_path / "voice"
    arguments = ["--corpus", str(short), "--corpus", str(long), "--out", str(out)]
    assert export.main(parser.parse_args(["--fit", str(fitted), *arguments])) == 0
    assert lengths[0] == lengths[1] < lengths[2] == lengths[3]
    assert package.read(out).manifest.default_speaker == "zf_test"
