"""Kokoro-82M: the rewritten graph against the one it came from, and what only this voice has."""

import json
import threading
import time

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.engine.saying import log_spectrum, never, pitch_hz, segment
from utterd.engine.frontend.contract import Word
from utterd.engine.runtimes.contract import AbandonedError
from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.voices import kokoro as kokoro_voice
from utterd.engine.voices import package
from utterd.engine.voices.contract import Controls
from utterd.engine.voices.kokoro import DURATIONS, FRAME, split
from utterd.engine.voices.kokoro_build import ENERGY, F0
from utterd.engine.voices.kokoro_symbols import LONGEST, SYMBOLS
from utterd.engine.voices.load import load
from utterd.engine.voices.package import VoiceError

SENTENCES = {
    "zf_xiaoxiao": "ni↓ xau↓ʂɨ↘ʨje↘.",
    "af_heart": "həlˈO wˈɜɹld.",
}


@pytest.fixture(scope="module")
def sessions(int8_graph, kokoro_dir):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return [
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        for path in (int8_graph, kokoro_dir / "model.onnx")
    ]


@pytest.mark.parametrize("speaker", SENTENCES)
def test_the_rewritten_graph_says_what_the_int8_graph_says(sessions, kokoro_dir, speaker):
    ids = [SYMBOLS[symbol] for symbol in SENTENCES[speaker]]
    table = np.fromfile(kokoro_dir / "speakers" / f"{speaker}.bin", "<f4").reshape(510, 256)
    feeds = {
        "tokens": np.array([[0, *ids, 0]], np.int64),
        "style": table[len(ids) - 1 : len(ids)],
        "speed": np.ones(1, np.float32),
    }
    (before,) = sessions[0].run(None, feeds)
    after, durations, f0, energy = sessions[1].run(["audio", DURATIONS, F0, ENERGY], feeds)
    # Durations are whole frames of 25 ms; rounding the weights' inputs moves few by one.
    assert abs(len(after) - len(before)) <= 3 * FRAME
    assert durations.shape == (1, len(ids) + 2)
    assert durations.sum() * FRAME == len(after)
    assert f0.size == energy.size == durations.sum() * 2
    length = min(len(before), len(after))
    if len(before) == len(after):
        near, far = log_spectrum(before[:length]), log_spectrum(after[:length])
        assert np.abs(near - far).mean() < 0.45
        assert np.corrcoef(near.ravel(), far.ravel())[0, 1] > 0.95
    loudness = [np.sqrt((audio**2).mean()) for audio in (before, after)]
    assert loudness[0] == pytest.approx(loudness[1], rel=0.1)


def test_no_integer_operator_is_left(kokoro_dir):
    model = onnx.load(kokoro_dir / "model.onnx")
    kinds = {node.op_type for node in model.graph.node}
    assert not {k for k in kinds if "Integer" in k or "DynamicQuantize" in k}


def test_its_package_is_complete(kokoro_dir):
    voice = package.read(kokoro_dir)
    voice.verify()
    manifest = voice.manifest
    assert manifest.languages == ("zh", "en")
    assert manifest.licence == "Apache-2.0"
    assert manifest.timings == "exact"
    assert {"zf_xiaoni", "zf_xiaoxiao", "zm_yunxi", "af_heart"} <= set(manifest.speakers)
    assert json.loads(voice.path("symbols.json").read_bytes()) == SYMBOLS


def test_every_symbol_of_its_alphabet_is_read(kokoro):
    alphabet = "".join(SYMBOLS)
    assert len(alphabet) == 114
    speech = kokoro.speak(segment(alphabet[:60]), Controls(rate=3.0), never)
    assert speech.skipped == ()
    speech = kokoro.speak(segment(alphabet[60:]), Controls(rate=3.0), never)
    assert speech.skipped == ()


def test_unknown_symbols_are_reported_and_change_nothing(kokoro):
    plain = kokoro.speak(segment("həlˈO wˈɜɹld."), Controls(), never)
    odd = kokoro.speak(segment("hə😀lˈO wˈ京ɜɹld."), Controls(), never)
    assert [(s.start, s.end, s.text) for s in odd.skipped] == [(2, 3, "😀"), (9, 10, "京")]
    assert odd.timing.samples == plain.timing.samples
    assert odd.timing.words == plain.timing.words
    only = kokoro.speak(segment("😀"), Controls(), never)
    assert only.timing.samples == 0
    assert len(only.skipped) == 1


def test_pitch_is_a_factor_on_f0(kokoro):
    said = segment("a→a→a→ na→na→na→ ma→ma→ma→")
    low, high = (
        np.concatenate(list(kokoro.speak(said, Controls(pitch=pitch), never).chunks()))
        for pitch in (1.0, 1.5)
    )
    ratio = pitch_hz(high, 24_000) / pitch_hz(low, 24_000)
    assert ratio == pytest.approx(1.5, rel=0.08)


def test_a_speaker_can_be_named(kokoro):
    said = segment("a→a→a→ na→na→na→ ma→ma→ma→")
    woman, man = (
        np.concatenate(list(kokoro.speak(said, Controls(speaker=speaker), never).chunks()))
        for speaker in ("zf_xiaoxiao", "zm_yunxi")
    )
    assert pitch_hz(woman, 24_000) > 1.3 * pitch_hz(man, 24_000)


def test_a_segment_that_is_too_long_for_one_run_is_cut_at_words(kokoro, monkeypatch):
    """With a limit of 16 symbols, so that it needn't speak for a minute."""
    said = segment("wˈɜɹld wˈɜɹld wˈɜɹld wˈɜɹld ")
    whole = kokoro.speak(said, Controls(), never)
    monkeypatch.setattr(kokoro_voice, "LONGEST", 16)
    speech = kokoro.speak(said, Controls(), never)
    words = list(speech.timing.words)
    assert len(words) == 4
    assert words == sorted(set(words))
    assert sum(len(chunk) for chunk in speech.chunks()) == speech.timing.samples
    # Two runs of two words each, every one with its own intonation and its own edges.
    assert speech.timing.samples != whole.timing.samples
    assert 0.7 < speech.timing.samples / whole.timing.samples < 1.6


@pytest.mark.parametrize(
    ("length", "cuts", "runs"),
    [
        (0, [], []),
        (510, [0, 400], [(0, 510)]),
        (511, [0, 400], [(0, 400), (400, 511)]),
        (1200, [], [(0, 510), (510, 1020), (1020, 1200)]),
        (1000, [0, 100, 510, 900], [(0, 510), (510, 1000)]),
    ],
)
def test_where_a_long_segment_is_cut(length, cuts, runs):
    assert split(length, cuts) == runs
    assert all(end - begin <= LONGEST for begin, end in runs)


def test_words_that_begin_behind_the_last_symbol_end_it(kokoro):
    said = segment("a→", words=(Word(0, 1, 0), Word(1, 2, 2)))
    speech = kokoro.speak(said, Controls(), never)
    assert speech.timing.words[1] == speech.timing.samples


def test_a_run_is_left_in_its_middle(kokoro):
    """Far sooner than the run would end, even on a busy machine."""
    said = segment(("wˈɜɹld " * 30)[:70])
    began = time.monotonic()
    kokoro.speak(said, Controls(), never)
    whole = time.monotonic() - began
    fence = threading.Event()
    timer = threading.Timer(0.2 * whole, fence.set)
    timer.start()
    began = time.monotonic()
    with pytest.raises(AbandonedError):
        kokoro.speak(said, Controls(), fence.is_set)
    timer.join()
    assert time.monotonic() - began < 0.7 * whole


def test_an_unknown_speaker_is_refused(kokoro_dir):
    with pytest.raises(VoiceError, match="no speaker 'nobody'; it has af_alloy"):
        load(kokoro_dir, "nobody", OnnxCpu(), 1)
