"""What all voices do to the samples of a segment: its edges, and its cut into chunks."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

AUDIBLE = 10.0 ** (-50.0 / 20.0)
"""First sound is the first sample above -50 dBFS."""

_SILENCE_SECONDS = 0.010
_FADE_SECONDS = 0.005
_FIRST_CHUNK_SECONDS = 0.05
_LARGEST_CHUNK_SECONDS = 0.4


def trim(samples: NDArray[np.float32], sample_rate: int) -> tuple[NDArray[np.float32], int]:
    """Leave exactly 10 ms before the first and behind the last sample above -50 dBFS.

    The outer 5 ms rise and fall as a raised cosine, so that no segment begins or ends in a step.

    Args:
        samples: mono float32.
        sample_rate: Hz.

    Returns:
        The samples, none if all are below, and where the first one stood in the input (below 0
        where silence had to be put before it).
    """
    loud = np.flatnonzero(np.abs(samples) > AUDIBLE)
    if not len(loud):
        return samples[:0], 0
    silence = round(_SILENCE_SECONDS * sample_rate)
    first, end = int(loud[0]) - silence, int(loud[-1]) + 1 + silence
    inside = samples[max(0, first) : end]
    trimmed = np.zeros(end - first, np.float32)
    trimmed[max(0, -first) : max(0, -first) + len(inside)] = inside
    ramp = _ramp(round(_FADE_SECONDS * sample_rate))
    trimmed[: len(ramp)] *= ramp
    trimmed[-len(ramp) :] *= ramp[::-1]
    return trimmed, first


def chunks(samples: NDArray[np.float32], sample_rate: int) -> Iterator[NDArray[np.float32]]:
    """Cut samples that are all there: 50 ms first, then twice as much each time up to 400 ms."""
    size = round(_FIRST_CHUNK_SECONDS * sample_rate)
    largest = round(_LARGEST_CHUNK_SECONDS * sample_rate)
    done = 0
    while done < len(samples):
        yield samples[done : done + size]
        done += size
        size = min(2 * size, largest)


def _ramp(length: int) -> NDArray[np.float32]:
    phase = (np.arange(length) + 0.5) * (np.pi / length)
    return np.asarray(0.5 - 0.5 * np.cos(phase), np.float32)
