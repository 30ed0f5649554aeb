"""What all voices do to the samples of a segment: its edges, and its cut into chunks."""

import functools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

AUDIBLE = 10.0 ** (-50.0 / 20.0)
"""First sound is the first sample above -50 dBFS."""

_SILENCE_SECONDS = 0.010
_FADE_SECONDS = 0.005
_FIRST_CHUNK_SECONDS = 0.05
_LARGEST_CHUNK_SECONDS = 0.4
_BLOCK = 2048


def trim(samples: NDArray[np.float32], sample_rate: int) -> tuple[NDArray[np.float32], int]:
    """Leave exactly 10 ms before the first and behind the last sample above -50 dBFS.

    The outer 5 ms rise and fall as a raised cosine, so that no segment begins or ends in a step.

    Args:
        samples: mono float32; what is left of them is shaped in place.
        sample_rate: Hz.

    Returns:
        The samples, none if all are below, and where the first one stood in the input (below 0
        where silence had to be put before it).
    """
    silence = round(_SILENCE_SECONDS * sample_rate)
    first, last = _first_loud(samples), _first_loud(samples[::-1])
    if first is None or last is None:
        return samples[:0], 0
    first, end = first - silence, len(samples) - last + silence
    trimmed = samples[max(0, first) : end]
    if first < 0 or end > len(samples):
        trimmed = np.pad(trimmed, (max(0, -first), max(0, end - len(samples))))
    ramp = _ramp(round(_FADE_SECONDS * sample_rate))
    trimmed[: len(ramp)] *= ramp
    trimmed[-len(ramp) :] *= ramp[::-1]
    return trimmed, first


def _first_loud(samples: NDArray[np.float32]) -> int | None:
    """Index of the first sample above -50 dBFS, looked for block by block."""
    for begin in range(0, len(samples), _BLOCK):
        loud = np.abs(samples[begin : begin + _BLOCK]) > AUDIBLE
        if loud.any():
            return begin + int(loud.argmax())
    return None


def chunks(samples: NDArray[np.float32], sample_rate: int) -> Iterator[NDArray[np.float32]]:
    """Cut samples that are all there: 50 ms first, then twice as much each time up to 400 ms."""
    size = round(_FIRST_CHUNK_SECONDS * sample_rate)
    largest = round(_LARGEST_CHUNK_SECONDS * sample_rate)
    done = 0
    while done < len(samples):
        yield samples[done : done + size]
        done += size
        size = min(2 * size, largest)


@functools.cache
def _ramp(length: int) -> NDArray[np.float32]:
    phase = (np.arange(length) + 0.5) * (np.pi / length)
    return np.asarray(0.5 - 0.5 * np.cos(phase), np.float32)
