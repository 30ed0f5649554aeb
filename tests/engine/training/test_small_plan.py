"""Looking at the beginning of a long segment first changes nothing that is heard."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.training.test_small_voice import TEXT, never, segment
from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.voices.contract import Controls
from utterd.engine.voices.package import VoicePackage
from utterd.engine.voices.small import Network, Small
from utterd.engine.voices.small_plan import Encoded, Manner, Plan


@pytest.fixture(scope="module")
def voices(package: VoicePackage):
    """One that looks at the beginning first, and one that looks at everything at once."""
    first, whole = Small(package, "", OnnxCpu(), 1), Small(package, "", OnnxCpu(), 1)
    whole._reach = 0
    yield first, whole
    first.close()
    whole.close()


def said(voice: Small, text: str, controls: Controls):
    speech = voice.speak(segment(text), controls, never)
    settled = speech.settled
    samples = np.concatenate(list(speech.chunks()))
    assert speech.settled
    return speech.timing, samples, settled


def test_the_export_says_how_far_the_encoder_looks(package: VoicePackage) -> None:
    network = msgspec.json.decode(package.path("network.json").read_bytes(), type=Network)
    assert network.reach == 9


def test_a_token_depends_on_nothing_beyond_the_reach(voices) -> None:
    voice, _ = voices
    tokens = [0, *np.random.default_rng(1).integers(1, 100, 60).tolist(), 0]
    whole, part = voice._encode(tokens, 62, 62), voice._encode(tokens[:30], 62, 30)
    certain = 30 - voice._reach
    for name in ("hidden", "durations", "contour"):
        one, other = getattr(whole, name), getattr(part, name)
        np.testing.assert_allclose(other[:certain], one[:certain], atol=1e-5)
    assert np.abs(part.contour[certain] - whole.contour[certain]).max() > 1e-5


@pytest.mark.parametrize("wanted", [1, 7, 53, 60, 62])
def test_of_the_first_tokens_the_same_is_said_as_with_all(voices, wanted) -> None:
    voice, _ = voices
    tokens = [0, *np.random.default_rng(2).integers(1, 100, 60).tolist(), 0]
    whole = voice._encode(tokens, 62, 62).part(0, wanted)
    seen = tokens[: wanted + voice._reach]
    for part in (voice._encode(tokens, 62, wanted), voice._encode(seen, 62, wanted)):
        for name in ("hidden", "durations", "contour"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    text=st.text(sorted(set(TEXT)), min_size=1, max_size=200),
    rate=st.sampled_from([0.5, 1.0, 1.6, 3.0]),
    pitch=st.sampled_from([0.8, 1.0, 1.3]),
)
def test_both_say_the_same(voices, text, rate, pitch) -> None:
    first, whole = voices
    timing, samples, _ = said(first, text, Controls(rate, pitch))
    expected, reference, _ = said(whole, text, Controls(rate, pitch))
    assert timing == expected
    np.testing.assert_allclose(samples, reference, atol=1e-4, rtol=0)


def test_only_a_long_segment_is_begun_before_all_of_it_was_looked_at(voices) -> None:
    first, whole = voices
    assert not said(first, TEXT * 3, Controls())[2]
    assert not said(first, TEXT * 3, Controls(rate=2.5))[2]
    assert said(first, TEXT[:20], Controls())[2]
    assert said(whole, TEXT * 3, Controls())[2]


def test_the_timing_may_be_asked_for_at_any_time(voices) -> None:
    first, _ = voices
    early = first.speak(segment(TEXT * 4), Controls(), never)
    timing = early.timing
    samples = np.concatenate(list(early.chunks()))
    later_timing, later, _ = said(first, TEXT * 4, Controls())
    assert timing == later_timing
    assert timing.samples == len(samples)
    np.testing.assert_array_equal(samples, later)


def test_every_token_lasts_as_long_as_the_network_says() -> None:
    """The first consonant sounds while its pad lasts: cut, it is heard as another."""
    durations = np.array([5.2, 3.1, 0.2, 7.0, 0.01])

    def encode(tokens: list[int], count: int, wanted: int) -> Encoded:
        assert len(tokens) == count == wanted == 5
        return Encoded(np.zeros((5, 4), np.float32), durations, np.zeros((5, 4, 3), np.float32))

    plan = Plan(encode, [0, 7, 8, 9, 0], Manner(rate=1.0, pitch=1.0), 0, 6)
    np.testing.assert_array_equal(plan.ends, [5, 8, 8, 16, 16])
    slow = Plan(encode, [0, 7, 8, 9, 0], Manner(rate=0.5, pitch=1.0), 0, 6)
    np.testing.assert_array_equal(slow.ends, [10, 17, 17, 31, 31])


def test_the_first_word_begins_with_the_sound(voices) -> None:
    first, _ = voices
    assert first.speak(segment(TEXT), Controls(), never).timing.words[0] == 0
