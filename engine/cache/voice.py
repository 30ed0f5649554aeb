"""A voice that remembers what it said."""

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from utterd.engine.cache.store import Cache
from utterd.engine.cache.stored import Stored
from utterd.engine.frontend.contract import Segment, Skipped
from utterd.engine.voices.contract import Controls, Speech, Timing, Voice
from utterd.engine.voices.whole import WholeSpeech


class CachedVoice:
    """See `Voice`. What comes from the cache is, sample for sample, what the voice once made.

    Args:
        voice: asked for what is not known.
        cache: of this voice.
    """

    def __init__(self, voice: Voice, cache: Cache) -> None:
        self.name = voice.name
        self.sample_rate = voice.sample_rate
        self.languages = voice.languages
        self.speakers = voice.speakers
        self.controls = voice.controls
        self.runtime = voice.runtime
        self.parallel = voice.parallel
        self.cache = cache
        self._voice = voice

    @property
    def network_ns(self) -> int:
        """See `Voice.network_ns`."""
        return self._voice.network_ns

    def speak(self, segment: Segment, controls: Controls, abandon: Callable[[], bool]) -> Speech:
        """Begin a segment; see `Voice.speak`."""
        key = self.cache.keys.of(segment, controls)
        if (known := self.cache.get(key)) is not None:
            return WholeSpeech(
                known.timing, time.monotonic_ns(), (), known.samples, self.sample_rate
            )
        forgotten = self.cache.forgotten
        speech = self._voice.speak(segment, controls, abandon)
        # What was skipped is told with its place in this text, which is no part of the key.
        return speech if speech.skipped else _Remembered(speech, self.cache, key, forgotten)

    def close(self) -> None:
        """Free the runtime."""
        self._voice.close()


class _Remembered:
    """Speech that is kept once all of it was made, unless all is forgotten meanwhile."""

    def __init__(self, speech: Speech, cache: Cache, key: bytes, forgotten: int) -> None:
        self._speech = speech
        self._cache = cache
        self._key = key
        self._forgotten = forgotten

    @property
    def settled(self) -> bool:
        """See `Speech.settled`."""
        return self._speech.settled

    @property
    def timing(self) -> Timing:
        """See `Speech.timing`."""
        return self._speech.timing

    @property
    def encoded_ns(self) -> int:
        """See `Speech.encoded_ns`."""
        return self._speech.encoded_ns

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """See `Speech.skipped`."""
        return self._speech.skipped

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """See `Speech.chunks`."""
        made = []
        for chunk in self._speech.chunks():
            made.append(chunk)
            yield chunk
        # Behind the last chunk, which is in the ring by now.
        if made and self._cache.forgotten == self._forgotten:
            self._cache.put(self._key, Stored(self._speech.timing, np.concatenate(made)))
