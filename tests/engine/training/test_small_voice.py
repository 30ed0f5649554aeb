"""The voice kind `small`, on graphs exported from a network that was never taught."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from utterd.engine.frontend.contract import Mark, Phoneme, Segment, Word
from utterd.engine.runtimes.onnx_cpu import OnnxCpu, OnnxCpuGraph
from utterd.engine.voices.contract import AbandonedError, Controls
from utterd.engine.voices.package import VoiceError, VoicePackage
from utterd.engine.voices.small import Small

TEXT = "ʨʰjɛ↗nfa→ŋ sa→npai↗mi↓ nˈɛtflɪks jou↘ꭧwa↓n."


def segment(phonemes: str = TEXT, marks: tuple[Mark, ...] = ()) -> Segment:
    parts = tuple(Phoneme(symbol, i, i + 1) for i, symbol in enumerate(phonemes))
    firsts = [0, *(i + 1 for i, symbol in enumerate(phonemes) if symbol == " ")]
    words = tuple(Word(first, first + 1, first) for first in firsts if phonemes)
    return Segment(phonemes, 0, len(phonemes), "zh", (), parts, words, 200, marks)


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def voice(package: VoicePackage) -> Iterator[Small]:
    voice = Small(package, "zf_test", OnnxCpu(), 1)
    yield voice
    voice.close()


class Older(OnnxCpu):
    """Runs graphs as they were exported before a first look had an end."""

    def load(self, path: Path, threads: int, *, optimise: bool = True) -> OnnxCpuGraph:
        graph = super().load(path, threads, optimise=optimise)
        graph.inputs = tuple(name for name in graph.inputs if name != "wanted")
        return graph


def test_a_voice_of_an_older_release_says_what_to_do(package: VoicePackage) -> None:
    with pytest.raises(VoiceError, match="export it again"):
        Small(package, "", Older(), 1)


def say(voice: Small, *arguments: object) -> np.ndarray:
    speech = voice.speak(segment(*arguments), Controls(), never)
    return np.concatenate(list(speech.chunks()))


def test_its_samples_are_as_many_as_it_said(voice: Small) -> None:
    speech = voice.speak(segment(marks=(Mark("end", len(TEXT)),)), Controls(), never)
    chunks = list(speech.chunks())
    assert sum(map(len, chunks)) == speech.timing.samples > 24_000 // 4
    assert all(chunk.dtype == np.float32 for chunk in chunks)
    words = speech.timing.words
    assert len(words) == 4
    assert list(words) == sorted(words)
    assert words[-1] < speech.timing.marks[0] <= speech.timing.samples
    assert voice.network_ns > 0


def test_chunks_begin_short_and_grow(voice: Small) -> None:
    sizes = [len(c) for c in voice.speak(segment(TEXT * 4), Controls(), never).chunks()]
    assert sizes[0] <= 24 * 100
    assert sizes[1] > sizes[0]
    assert max(sizes) <= 24 * 900


def test_sound_begins_after_five_milliseconds(voice: Small) -> None:
    samples = say(voice)
    loud = np.flatnonzero(np.abs(samples) > 10 ** (-55 / 20))
    assert 120 <= loud[0] <= 120 + 24
    assert np.abs(samples[:10]).max() < 0.01
    assert np.abs(samples[-10:]).max() < 0.02


def test_the_same_text_sounds_the_same(voice: Small) -> None:
    np.testing.assert_array_equal(say(voice), say(voice))


@pytest.mark.parametrize("rate", [0.5, 1.7, 3.0])
def test_rate_changes_the_length(voice: Small, rate: float) -> None:
    plain = voice.speak(segment(), Controls(), never).timing.samples
    changed = voice.speak(segment(), Controls(rate=rate), never)
    assert changed.timing.samples == pytest.approx(plain / rate, abs=1200)
    assert sum(map(len, changed.chunks())) == changed.timing.samples


def test_pitch_changes_the_sound_but_not_the_length(voice: Small) -> None:
    plain, high = (
        np.concatenate(list(voice.speak(segment(), Controls(pitch=p), never).chunks()))
        for p in (1.0, 1.5)
    )
    # The head is cut where the sound begins, which is not the same sample for both.
    assert abs(len(plain) - len(high)) < 600
    size = min(len(plain), len(high))
    assert np.abs(plain[:size] - high[:size]).max() > 0.01


def test_unknown_symbols_are_reported_and_the_rest_is_spoken(voice: Small) -> None:
    speech = voice.speak(segment("a☃b"), Controls(), never)
    assert [s.text for s in speech.skipped] == ["☃"]
    assert sum(map(len, speech.chunks())) == speech.timing.samples > 0


@pytest.mark.parametrize("phonemes", ["", "☃"])
def test_nothing_to_say_is_no_sound(voice: Small, phonemes: str) -> None:
    speech = voice.speak(segment(phonemes), Controls(), never)
    assert speech.timing.samples == 0
    assert list(speech.chunks()) == []


def test_a_single_phoneme_is_spoken(voice: Small) -> None:
    assert len(say(voice, "a")) > 0


def test_it_stops_between_chunks_when_abandoned(voice: Small) -> None:
    gone = False
    speech = voice.speak(segment(TEXT * 4), Controls(), lambda: gone)
    chunks = speech.chunks()
    next(chunks)
    gone = True
    with pytest.raises(AbandonedError):
        list(chunks)
