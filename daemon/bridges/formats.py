"""Samples of the daemon (mono, 16 bits, little-endian) in the formats that HTTP clients ask for."""

import io
import struct
from typing import Literal

import numpy as np
import soxr

Format = Literal["pcm", "wav", "flac"]
TYPES: dict[Format, str] = {"pcm": "audio/pcm", "wav": "audio/wav", "flac": "audio/flac"}
PCM_RATE = 24_000
"""Hz of `pcm`: it has no header, and OpenAI's clients expect this."""
UNKNOWN = 0xFFFFFFFF
"""Length in the header of a WAV stream: until the end."""


def wav_header(rate: int, length: int = UNKNOWN) -> bytes:
    """What stands before the samples of a WAV file.

    Args:
        rate: Hz.
        length: of the samples, in bytes.
    """
    riff = min(length + 36, UNKNOWN)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    return (
        struct.pack("<4sI4s", b"RIFF", riff, b"WAVE") + form + struct.pack("<4sI", b"data", length)
    )


class Resampler:
    """Brings samples to `PCM_RATE`, chunk by chunk.

    Args:
        rate: that they have, in Hz.
    """

    def __init__(self, rate: int) -> None:
        same = rate == PCM_RATE
        self._stream = None if same else soxr.ResampleStream(rate, PCM_RATE, 1, dtype="int16")

    def push(self, samples: bytes, *, last: bool) -> bytes:
        """The next chunk; `last` also gives what the filter held back."""
        if self._stream is None:
            return samples
        made = self._stream.resample_chunk(np.frombuffer(samples, dtype="<i2"), last=last)
        return bytes(made.astype("<i2").tobytes())


def whole(format_: Format, samples: bytes, rate: int) -> bytes:
    """A complete file of all samples.

    Args:
        format_: of the file.
        samples: all of them.
        rate: Hz.
    """
    match format_:
        case "pcm":
            return Resampler(rate).push(samples, last=True)
        case "wav":
            return wav_header(rate, len(samples)) + samples
        case "flac":
            import soundfile  # noqa: PLC0415 - few ask for it

            file = io.BytesIO()
            frames = np.frombuffer(samples, dtype="<i2")
            soundfile.write(file, frames, rate, format="FLAC", subtype="PCM_16")
            return file.getvalue()
