"""Sound icons: short WAV or FLAC files that are played in turn with speech."""

from pathlib import Path

import numpy as np
import soxr
from numpy.typing import NDArray

LONGEST_SECONDS = 60.0


class SoundError(ValueError):
    """A file can't be played; one line: what happened, to what, and what to do."""


def read(path: Path, rate: int) -> NDArray[np.float32]:
    """Read a file as mono samples.

    Args:
        path: WAV, FLAC or whatever else libsndfile reads.
        rate: to resample to, in Hz.

    Returns:
        Shape (samples,), full scale 1.0.

    Raises:
        SoundError: there is no such file, it is no sound, or longer than a minute.
    """
    import soundfile  # noqa: PLC0415 - 0.1 s and some megabytes that few workers ever need

    try:
        with soundfile.SoundFile(path) as file:
            if file.frames > LONGEST_SECONDS * file.samplerate:
                raise SoundError(f"{path} is longer than {LONGEST_SECONDS:.0f} s: cut it")
            samples = file.read(dtype="float32", always_2d=True).mean(axis=1)
            source_rate = file.samplerate
    except soundfile.LibsndfileError as error:
        raise SoundError(f"{path} can't be played: {error.error_string}") from None
    resampled: NDArray[np.float32] = soxr.resample(samples, source_rate, rate)
    return resampled.astype(np.float32, copy=False)
