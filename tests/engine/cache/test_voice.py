"""With the cache is without the cache, sample for sample and word for word."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.saying import never, segment
from utterd.engine.cache.disk import Disk
from utterd.engine.cache.keys import Keys, identity
from utterd.engine.cache.secret import secret
from utterd.engine.cache.store import Cache
from utterd.engine.cache.voice import CachedVoice
from utterd.engine.runtimes.contract import AbandonedError
from utterd.engine.voices.contract import Controls

SYMBOLS = "aiunxt ,.˥ɕ"

segments = st.builds(
    segment,
    st.text(SYMBOLS, min_size=1, max_size=24),
    language=st.sampled_from(["zh", "en"]),
    start=st.integers(0, 50),
)
controls = st.builds(
    Controls, st.sampled_from([0.5, 1.0, 1.7, 3.0]), st.sampled_from([0.8, 1.0, 1.25])
)


def said(voice, spoken, how=Controls()):  # noqa: B008 - frozen
    speech = voice.speak(spoken, how, never)
    chunks = [chunk.copy() for chunk in speech.chunks()]
    return speech.timing, np.concatenate([*chunks, np.zeros(0, np.float32)]), speech.skipped


@settings(max_examples=40, deadline=None, derandomize=True)
@given(spoken=segments, how=controls)
def test_every_way_through_the_cache_gives_what_the_voice_gives(tiny, cache_on_disk, spoken, how):
    timing, samples, skipped = said(tiny, spoken, how)
    one = CachedVoice(tiny, cache_on_disk())
    for _ in range(3):  # made, from memory, from memory and on its way to the disk
        found = said(one, spoken, how)
        assert (found[0], found[2]) == (timing, skipped)
        np.testing.assert_array_equal(found[1], samples)
    one.cache._disk.flush()
    again = CachedVoice(tiny, cache_on_disk())
    found = said(again, spoken, how)
    assert (found[0], found[2]) == (timing, skipped)
    np.testing.assert_array_equal(found[1], samples)
    if len(samples) and not skipped:
        assert again.cache.counts().disk_hits == 1


@pytest.fixture(scope="module")
def cache_on_disk(package, tmp_path_factory):
    """As `cache`, for all examples of a test."""
    folder = tmp_path_factory.mktemp("data") / "cache"
    ours = identity(package, "onnxruntime-cpu", 1)
    opened = []

    def begin():
        opened.append(Disk(folder, "tiny", ours, 1 << 26, 1e6))
        opened[-1].flush()
        for old in opened[:-2]:
            old.close()
            opened.remove(old)
        return Cache(Keys(secret(folder), ours), 1 << 22, 1e6, opened[-1])

    yield begin
    for one in opened:
        one.close()


def test_known_text_needs_no_network(tiny, cache):
    one = CachedVoice(tiny, cache())
    said(one, segment("ni xau"))
    before = one.network_ns
    said(one, segment("ni xau", start=30, pause_ms=0))
    assert one.network_ns == before
    said(one, segment("ni xau a"))
    assert one.network_ns > before


def test_what_was_left_in_the_middle_is_not_kept(tiny, cache):
    one = CachedVoice(tiny, cache())
    spoken = segment("ninininininininininini ninininininininininini")
    chunks = one.speak(spoken, Controls(), never).chunks()
    next(chunks)
    chunks.close()
    assert one.cache.counts().entries == 0
    with pytest.raises(AbandonedError):
        one.speak(spoken, Controls(), lambda: True)


def test_what_is_being_said_when_all_is_forgotten_is_not_kept(tiny, cache, monkeypatch):
    one = CachedVoice(tiny, cache(on_disk=True))
    spoken = segment("ninininininininininini ninininininininininini")
    chunks = one.speak(spoken, Controls(), never).chunks()
    next(chunks)
    one.cache.forget()
    assert list(chunks)
    assert one.cache.counts().entries == 0
    speak = tiny.speak

    def forgotten_in_the_network(*arguments):
        one.cache.forget()
        return speak(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(tiny, "speak", forgotten_in_the_network)
        said(one, spoken)
    assert one.cache.counts().entries == 0
    said(one, spoken)
    assert one.cache.counts().entries == 1
    one.cache._disk.flush()
    assert one.cache.counts().disk_bytes == 0  # it has been said once


def test_what_has_no_sound_is_told_each_time(tiny, cache):
    one = CachedVoice(tiny, cache())
    for start in (0, 40):
        spoken = segment("ni 😀 xau")
        phonemes = tuple(
            dataclasses.replace(p, start=p.start + start, end=p.end + start)
            for p in spoken.phonemes
        )
        _, _, skipped = said(one, dataclasses.replace(spoken, phonemes=phonemes))
        assert [(s.start, s.text) for s in skipped] == [(start + 3, "😀")]


def test_another_rate_is_another_sound(tiny, cache):
    one = CachedVoice(tiny, cache())
    slow = said(one, segment("ni xau"), Controls(rate=0.5))
    assert len(said(one, segment("ni xau"), Controls(rate=2.0))[1]) < len(slow[1])
