"""The measures tell good from bad, and an evaluation ends in a report."""

import json
from pathlib import Path

import numpy as np
import pytest

from utterd.engine.training import evaluate, heldout, measures, plan, texts
from utterd.engine.voices.kokoro_symbols import SYMBOLS

TIME = np.arange(2 * 24_000) / 24_000
TONE = (0.3 * np.sin(2 * np.pi * 220 * TIME)).astype(np.float32)


def test_mel_distance_is_nothing_to_itself_and_grows_with_the_difference() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(len(TONE)).astype(np.float32)
    near, far = TONE + 0.001 * noise, TONE + 0.1 * noise
    assert measures.mel_distance(TONE, TONE) == 0
    assert measures.mel_distance(near, TONE) < measures.mel_distance(far, TONE)


def test_twice_as_loud_is_six_decibels_where_there_is_sound() -> None:
    noise = np.random.default_rng(0).standard_normal(24_000).astype(np.float32)
    assert measures.mel_distance(2 * noise, noise) == pytest.approx(6.02, abs=0.01)


def test_visqol_hears_the_same_as_the_same_and_more_noise_as_worse() -> None:
    rng = np.random.default_rng(0)
    syllables = TONE * (np.sin(2 * np.pi * 3 * TIME) > 0).astype(np.float32)
    noise = rng.standard_normal(len(TONE)).astype(np.float32)
    same, near, far = (
        measures.visqol_score(syllables + np.float32(level) * noise, syllables)
        for level in (0, 0.001, 0.1)
    )
    assert same == 5
    assert 1 <= far < near < same


def test_a_semitone_is_a_hundred_cents() -> None:
    truth = np.array([0, 200, 220, 240, 9, 180], np.float32)
    heard = truth * np.float32(2 ** (1 / 12))
    heard[1] = 0
    cents, voicing = measures.f0_error(heard, truth)
    assert cents == pytest.approx(100, abs=0.1)
    assert voicing == pytest.approx(1 / 6)
    assert np.isnan(measures.f0_error(np.zeros(6, np.float32), truth)[0])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    plan.save(folder / "plan.json", plan.Plan(7, "zf_test", "0", SYMBOLS, []))
    return folder


def test_the_teacher_is_asked_once(teacher: Path, tmp_path: Path) -> None:
    sentences = list(enumerate(texts.held_out()[:2]))
    first = heldout.render(sentences, SYMBOLS, "zf_test", teacher, tmp_path / "cache")
    nowhere = tmp_path / "no teacher here"
    again = heldout.render(sentences, SYMBOLS, "zf_test", nowhere, tmp_path / "cache")
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.audio, other.audio)


def test_an_evaluation_ends_in_a_report(
    teacher: Path, corpus: Path, fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = iter([(3.0, 4.0), (2.5, 3.5), (2.8, 3.7)] * 99)
    monkeypatch.setattr(measures, "dnsmos_scores", lambda _: measures.Scores(*next(scored)))
    monkeypatch.setattr(evaluate.os, "nice", lambda _: 19)
    out = tmp_path / "report"
    parser = evaluate.argparse.ArgumentParser()
    evaluate.add_arguments(parser)
    arguments = ["--fit", str(fitted), "--corpus", str(corpus), "--teacher", str(teacher)]
    options = parser.parse_args([*arguments, "--out", str(out), "--every", "40"])
    assert evaluate.main(options) == 0
    content = json.loads((out / "summary.json").read_text())
    assert content["steps"] == {"acoustic": 2, "prosody": 2}
    assert content["means"]["all"]["sentences"] == 3
    assert content["means"]["all"]["teacher_overall"] == 3
    assert content["means"]["all"]["own_p808"] == 3.5
    assert content["means"]["all"]["mel_db"] > 0
    assert (out / "report.html").stat().st_size > 1000
    assert len(list((out / "shown").glob("*.wav"))) == 3
    # A second run finds every score on disk and asks nobody.
    monkeypatch.setattr(measures, "dnsmos_scores", None)
    assert evaluate.main(options) == 0
    assert json.loads((out / "summary.json").read_text()) == content


def test_dnsmos_calls_noise_bad() -> None:
    rng = np.random.default_rng(0)
    noise = (0.1 * rng.standard_normal(48_000)).astype(np.float32)
    assert 1 <= measures.dnsmos_scores(noise).overall < 2
