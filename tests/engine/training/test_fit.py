"""A fit learns, and a fit that was stopped ends where one that was not does."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from utterd.engine.training import checkpoint, dataset, fit, losses, plan, shards, tasks
from utterd.engine.training.teacher import Rendering

from .conftest import TINY


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Harmonic tones whose pitch and length go with the phoneme."""
    return harmonic(tmp_path_factory.mktemp("corpus"), 2)


def harmonic(folder: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    for number in range(2):
        items = [one(number * 16 + i, rng) for i in range(16)]
        shards.write(folder, number, items)
    plan.save(folder / "plan.json", plan.Plan(seed, "zf_test", "0" * 64, {}, []))
    return folder


def one(item: int, rng: np.random.Generator) -> shards.Taught:
    tokens = np.array([0, *rng.choice([43, 47, 51, 57], 6), 0], np.int16)
    durations = np.array([1, *(4 + tokens[1:-1] // 10 - 4), 1], np.int16)
    f0 = np.repeat(100.0 + 3.0 * tokens, 2 * durations.astype(int)).astype(np.float32)
    phase = np.interp((np.arange(len(f0) * 300) + 0.5) / 300 - 0.5, np.arange(len(f0)), f0 / 80)
    cycles = np.cumsum(phase / 300)
    audio = 0.1 * sum(np.cos(2 * np.pi * h * cycles) / h for h in range(1, 9))
    return shards.taught(item, tokens, Rendering(audio.astype(np.float32), durations, f0, f0 / 50))


def options(what: str, corpus: Path, out: Path, steps: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    fit.add_arguments(parser)
    out.mkdir(exist_ok=True)
    return parser.parse_args(
        [what, "--corpus", str(corpus), "--out", str(out), "--steps", str(steps)]
    )


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"small": TINY, "large": replace(TINY, decoder_blocks=TINY.decoder_blocks + 1)}
    monkeypatch.setattr(fit, "SIZES", sizes)
    monkeypatch.setattr(fit, "_WARM_STEPS", 10)
    monkeypatch.setattr(tasks, "_CROPS", 3)
    monkeypatch.setattr(tasks, "_CROP_BLOCKS", 24)


@pytest.mark.parametrize("what", ["acoustic", "prosody"])
def test_a_stopped_fit_goes_on_as_if_it_had_not_been(what, corpus, tmp_path) -> None:
    fit.Fit(options(what, corpus, tmp_path / "whole", 6)).run()
    fit.Fit(options(what, corpus, tmp_path / "parts", 3)).run()
    fit.Fit(options(what, corpus, tmp_path / "parts", 6)).run()
    whole, parts = (checkpoint.load(tmp_path / n / f"{what}.pt") for n in ("whole", "parts"))
    assert whole["step"] == parts["step"] == 6
    for part in ("network", "average"):
        for name, tensor in whole[part].items():
            torch.testing.assert_close(parts[part][name], tensor, atol=0, rtol=0, msg=name)
    assert torch.equal(whole["random"]["torch"], parts["random"]["torch"])
    curve = json.loads((tmp_path / "parts" / f"{what}-curve.json").read_text())
    assert [row["step"] for row in curve] == [3, 6]


@pytest.mark.parametrize(("what", "steps", "share"), [("acoustic", 60, 0.8), ("prosody", 90, 0.6)])
def test_a_fit_learns(what, steps, share, corpus, tmp_path) -> None:
    fit.Fit(options(what, corpus, tmp_path, 1)).run()
    fit.Fit(options(what, corpus, tmp_path, steps)).run()
    first, last = json.loads((tmp_path / f"{what}-curve.json").read_text())
    assert last["valid_total"] < share * first["valid_total"]
    best = checkpoint.load(tmp_path / f"{what}-best.pt")
    assert best["step"] == steps
    assert checkpoint.shape(best) == TINY


def test_on_another_corpus_the_best_is_chosen_anew(corpus, tmp_path) -> None:
    out = tmp_path / "fit"
    fit.Fit(options("prosody", corpus, out, 3)).run()
    state = checkpoint.load(out / "prosody.pt")
    checkpoint.save(out / "prosody.pt", state | {"best": -1.0})  # by a measure that is easier
    (tmp_path / "other").mkdir()
    fit.Fit(options("prosody", corpus, out, 5)).run()
    assert checkpoint.load(out / "prosody-best.pt")["step"] == 3
    fit.Fit(options("prosody", harmonic(tmp_path / "other", 3), out, 7)).run()
    best = checkpoint.load(out / "prosody-best.pt")
    assert best["step"] == 7
    assert [corpus["seed"] for corpus in best["corpora"]] == [3]


def test_an_error_where_speech_is_costs_more_than_above_it() -> None:
    rng = torch.Generator().manual_seed(1)
    wanted = 0.1 * torch.randn(1, 24_000, generator=rng)
    spectrum = torch.fft.rfft(wanted)
    hertz = torch.linspace(0, 12_000, spectrum.shape[-1])

    def louder(low: float, high: float) -> float:
        gain = torch.where((hertz >= low) & (hertz < high), 2.0, 1.0)
        return float(losses.spectral(torch.fft.irfft(spectrum * gain), wanted))

    assert louder(0, 12_000) == pytest.approx(np.log(2) + 1, rel=0.02)  # weights are 1 on the mean
    assert louder(1000, 2000) > 1.2 * louder(8000, 9000)


def test_a_fit_that_is_annealed_from_its_beginning_warms_up(corpus, tmp_path) -> None:
    arguments = options("prosody", corpus, tmp_path, 8)
    arguments.anneal = 20
    fit.Fit(arguments).run()
    (row,) = json.loads((tmp_path / "prosody-curve.json").read_text())
    assert row["rate"] == pytest.approx(1e-3 * 9 / 10 * (1 - 8 / 20), rel=1e-3)


def test_an_annealed_fit_ends_with_no_rate(corpus, tmp_path) -> None:
    arguments = options("prosody", corpus, tmp_path, 12)
    fit.Fit(arguments).run()
    arguments.anneal, arguments.steps = 8, 16
    fit.Fit(arguments).run()
    arguments.steps = 100
    fit.Fit(arguments).run()
    curve = json.loads((tmp_path / "prosody-curve.json").read_text())
    assert [row["step"] for row in curve] == [12, 16, 20]
    assert curve[1]["rate"] == pytest.approx(curve[0]["rate"] / 2, rel=1e-3)
    assert curve[2]["rate"] == 0
    fit.Fit(arguments).run()  # as after a kill: it is over
    assert checkpoint.load(tmp_path / "prosody.pt")["step"] == 20
    arguments.again, arguments.anneal = True, 4
    fit.Fit(arguments).run()
    assert checkpoint.load(tmp_path / "prosody.pt")["anneal"] == (20, 4)
    assert checkpoint.load(tmp_path / "prosody-best.pt")["step"] <= 24
    curve = json.loads((tmp_path / "prosody-curve.json").read_text())
    assert [row["step"] for row in curve] == [12, 16, 20, 24]
    assert curve[3]["rate"] == 0


def test_a_fit_against_an_adversary_stops_and_goes_on(corpus, tmp_path) -> None:
    for folder, steps in (("whole", (2, 5)), ("parts", (2, 3, 5))):
        for number, step in enumerate(steps):
            arguments = options("acoustic", corpus, tmp_path / folder, step)
            arguments.adversary = 1.6 if number == 1 else None  # later the checkpoint knows
            fit.Fit(arguments).run()
    whole, parts = (checkpoint.load(tmp_path / n / "acoustic.pt") for n in ("whole", "parts"))
    assert whole["task"]["steps"] == parts["task"]["steps"] == 3
    assert whole["task"]["share"] == parts["task"]["share"] == 1.6
    for part in (whole["network"], whole["task"]["judges"]):
        other = parts["network"] if part is whole["network"] else parts["task"]["judges"]
        for name, tensor in part.items():
            torch.testing.assert_close(other[name], tensor, atol=0, rtol=0, msg=name)
    # The last weights are kept, whatever the distance says.
    best = checkpoint.load(tmp_path / "whole" / "acoustic-best.pt")
    assert (best["step"], best["adversary"]) == (5, 1.6)
    curve = json.loads((tmp_path / "whole" / "acoustic-curve.json").read_text())
    assert "train_told" not in curve[0]
    assert curve[-1]["train_told"] > 0
    assert curve[-1]["rate"] < tasks.AcousticTask.rate


def test_prosody_has_no_adversary(corpus, tmp_path) -> None:
    arguments = options("prosody", corpus, tmp_path, 1)
    arguments.adversary = 1.6
    with pytest.raises(ValueError, match="only `fit acoustic`"):
        fit.Fit(arguments)


def test_a_fit_begins_with_the_weights_of_another(corpus, tmp_path) -> None:
    fit.Fit(options("prosody", corpus, tmp_path / "first", 30)).run()
    arguments = options("prosody", corpus, tmp_path / "second", 1)
    arguments.begin = tmp_path / "first"
    fit.Fit(arguments).run()
    fit.Fit(options("prosody", corpus, tmp_path / "third", 1)).run()
    first, second, third = (
        json.loads((tmp_path / n / "prosody-curve.json").read_text())[-1]
        for n in ("first", "second", "third")
    )
    assert second["step"] == 1
    assert second["valid_total"] == pytest.approx(first["valid_total"], rel=0.05)
    assert third["valid_total"] > 1.2 * first["valid_total"]


def test_a_checkpoint_of_an_earlier_release_is_refused_by_name(corpus, tmp_path) -> None:
    fit.Fit(options("acoustic", corpus, tmp_path, 1)).run()
    for name in ("acoustic.pt", "acoustic-best.pt"):
        content = checkpoint.load(tmp_path / name)
        for part in ("decoder.head.weight", "decoder.head.bias"):
            content["network"][part] = content["network"][part][:-64]
        checkpoint.save(tmp_path / name, content)
    with pytest.raises(ValueError, match="earlier release"):
        fit.Fit(options("acoustic", corpus, tmp_path, 2))
    begun = options("acoustic", corpus, tmp_path / "other", 1)
    begun.begin = tmp_path
    with pytest.raises(ValueError, match="earlier release"):
        fit.Fit(begun)


def test_a_large_fit_begins_as_the_small_one_sounded(corpus, tmp_path) -> None:
    fit.Fit(options("acoustic", corpus, tmp_path / "small", 30)).run()
    arguments = options("acoustic", corpus, tmp_path / "large", 1)
    arguments.begin, arguments.size = tmp_path / "small", "large"
    fit.Fit(arguments).run()
    small, large = (
        json.loads((tmp_path / n / "acoustic-curve.json").read_text())[-1]
        for n in ("small", "large")
    )
    assert large["valid_total"] == pytest.approx(small["valid_total"], rel=0.02)
    best = checkpoint.load(tmp_path / "large" / "acoustic-best.pt")
    assert checkpoint.shape(best) == fit.SIZES["large"]
    arguments = options("acoustic", corpus, tmp_path / "small again", 1)
    arguments.begin = tmp_path / "large"
    with pytest.raises(ValueError, match="other sizes"):
        fit.Fit(arguments)


def test_weights_of_other_sizes_are_no_beginning(corpus, tmp_path, monkeypatch) -> None:
    fit.Fit(options("prosody", corpus, tmp_path / "first", 1)).run()
    other = type(TINY)(**{**TINY.to_json(), "encoder": 20})
    monkeypatch.setitem(fit.SIZES, "small", other)
    arguments = options("prosody", corpus, tmp_path / "second", 1)
    arguments.begin = tmp_path / "first"
    with pytest.raises(ValueError, match="other sizes"):
        fit.Fit(arguments)


def test_durations_are_learnt_without_a_bias() -> None:
    """Where nothing tells 4 frames from 20, the answer is their mean, 12."""
    answer = torch.tensor(12.0, requires_grad=True)
    task = tasks.ProsodyTask(TINY, torch.device("cpu"))
    found = task.duration_error(answer.expand(1, 2), torch.tensor([[4.0, 20.0]]), torch.ones(1, 2))
    (slope,) = torch.autograd.grad(found, answer)
    assert float(slope) == pytest.approx(0, abs=1e-5)


def test_a_corpus_that_grows_is_taken_up(corpus, tmp_path) -> None:
    first = shards.find(corpus)[0]
    (tmp_path / first.name).write_bytes(first.read_bytes())
    growing = dataset.Corpus([tmp_path])
    before = len(growing.train) + len(growing.validation)
    second = shards.find(corpus)[1]
    (tmp_path / second.name).write_bytes(second.read_bytes())
    growing.refresh()
    growing.refresh()
    assert len(growing.train) + len(growing.validation) == before + 16


def test_a_network_of_other_sizes_is_refused(corpus, tmp_path, monkeypatch) -> None:
    fit.Fit(options("prosody", corpus, tmp_path, 1)).run()
    other = type(TINY)(**{**TINY.to_json(), "encoder": 20})
    monkeypatch.setitem(fit.SIZES, "small", other)
    with pytest.raises(ValueError, match="other sizes"):
        fit.Fit(options("prosody", corpus, tmp_path, 2))


def test_an_empty_corpus_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(ValueError, match=f"too little speech in {tmp_path}"):
        dataset.Corpus([tmp_path])
