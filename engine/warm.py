"""The first runs of a network are slow: they happen before the voice calls itself ready."""

import time
from collections.abc import Callable

from utterd.engine.frontend.reader import Reader
from utterd.engine.voices.contract import Controls, Voice

# Several lengths and other words each: a network warmed by one text is cold for the next.
_TEXTS = {
    "zh": ("好的。", "前方路口右转。", "正在为你导航到最近的加油站。"),
    "en": ("Okay.", "Turn left at the next junction.", "The nearest station is five miles away."),
}


def warm(voice: Voice, reader: Reader, tick: Callable[[], None]) -> float:
    """Let a voice speak to nobody.

    Args:
        voice: just loaded.
        reader: the front end, warmed as well.
        tick: called after each segment.

    Returns:
        Time of synthesis per time of speech of the longest text; 0 if the voice knows no text
        here.
    """
    factor = 0.0
    main = voice.languages[0]
    for language in voice.languages:
        texts = _TEXTS.get(language, ())
        for text in texts if language == main else texts[:1]:
            began, samples = time.monotonic_ns(), 0
            for segment in reader.analyse(text, language=language).segments:
                speech = voice.speak(segment, Controls(), lambda: False)
                samples += sum(len(chunk) for chunk in speech.chunks())
                tick()
            if samples and language == main:
                factor = (time.monotonic_ns() - began) / 1e9 * voice.sample_rate / samples
    return factor
