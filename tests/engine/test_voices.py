"""What every voice must do, whatever its kind."""

import dataclasses

import numpy as np
import pytest

from tests.engine.saying import never
from utterd.engine.runtimes.contract import AbandonedError
from utterd.engine.voices.contract import Controls
from utterd.engine.voices.shape import AUDIBLE

TEXT = "Turn left at the next junction."


@pytest.fixture(params=["kokoro", "joe"])
def voice(request: pytest.FixtureRequest):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def spoken(kokoro, joe, reader):
    """Each voice's speech of one sentence, made once: timing, samples, chunks."""
    (segment,) = reader.analyse(TEXT, language="en").segments
    made = {}
    for voice in (kokoro, joe):
        speech = voice.speak(segment, Controls(), never)
        made[voice] = (segment, speech, list(speech.chunks()))
    return made


def test_its_samples_are_as_many_as_it_said(voice, spoken):
    _, speech, chunks = spoken[voice]
    assert sum(map(len, chunks)) == speech.timing.samples
    assert all(chunk.dtype == np.float32 and chunk.ndim == 1 for chunk in chunks)
    assert 1.0 < speech.timing.samples / voice.sample_rate < 4.0


def test_ten_ms_of_silence_stand_at_both_ends(voice, spoken):
    samples = np.concatenate(spoken[voice][2])
    audible = np.flatnonzero(np.abs(samples) > AUDIBLE)
    silence = round(0.010 * voice.sample_rate)
    assert audible[0] == silence
    assert len(samples) - 1 - audible[-1] == silence


def test_it_neither_clips_nor_whispers(voice, spoken):
    samples = np.concatenate(spoken[voice][2])
    assert 0.1 < np.abs(samples).max() < 1.0
    assert abs(samples.mean()) < 0.01
    assert np.isfinite(samples).all()


def test_words_begin_in_order_inside_it(voice, spoken):
    segment, speech, _ = spoken[voice]
    words = speech.timing.words
    assert len(words) == len(segment.words) == 6
    assert list(words) == sorted(set(words))
    assert words[0] < 0.15 * voice.sample_rate
    assert words[-1] < speech.timing.samples - 0.1 * voice.sample_rate


def test_a_word_begins_in_a_valley(voice, spoken):
    """`next` and `junction` are parted by a stop: it is quieter there than around it."""
    _, speech, chunks = spoken[voice]
    samples = np.concatenate(chunks)
    at = speech.timing.words[-1]
    window = round(0.03 * voice.sample_rate)
    around = round(0.15 * voice.sample_rate)
    loudness = np.sqrt(np.convolve(samples**2, np.ones(window) / window, "same"))
    near = loudness[at - around : at + around]
    assert loudness[at - window : at + window].min() < 0.5 * near.max()


def test_the_same_text_gives_the_same_samples(voice, spoken):
    segment, _, chunks = spoken[voice]
    again = np.concatenate(list(voice.speak(segment, Controls(), never).chunks()))
    np.testing.assert_allclose(again, np.concatenate(chunks), atol=1e-3)


@pytest.mark.parametrize(("rate", "factor"), [(0.8, 1.25), (2.0, 0.5)])
def test_rate_changes_the_length(voice, spoken, rate, factor):
    segment, speech, _ = spoken[voice]
    other = voice.speak(segment, Controls(rate=rate), never)
    assert other.timing.samples == pytest.approx(
        factor * speech.timing.samples, rel=0.15 if rate < 1 else 0.25
    )


def test_an_abandoned_segment_is_left(voice, spoken):
    with pytest.raises(AbandonedError):
        voice.speak(spoken[voice][0], Controls(), lambda: True)
    # ... and the voice speaks on.
    assert voice.speak(spoken[voice][0], Controls(), never).timing.samples


def test_a_segment_without_phonemes_has_no_samples(voice, reader):
    (segment,) = reader.analyse(TEXT, language="en").segments
    empty = dataclasses.replace(segment, text="", phonemes=(), words=(), syllables=())
    speech = voice.speak(empty, Controls(), never)
    assert speech.timing.samples == 0
    assert list(speech.chunks()) == []


def test_it_counts_its_network_time(voice, spoken):
    before = voice.network_ns
    voice.speak(spoken[voice][0], Controls(), never)
    assert voice.network_ns > before
