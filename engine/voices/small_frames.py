"""From phonemes with prosody to the frames that the small voice's decoder takes (host side).

Frames are 300 samples at 24 kHz (12.5 ms). Frame k stands for samples 300 k to 300 k + 299.
Training and speaking share this module, so that the network meets the same numbers in both.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 24_000
HOP = 300
FRAMES_PER_SECOND = SAMPLE_RATE // HOP
VOICED_HZ = 40.0
REFERENCE_HZ = 200.0
ENERGY_SCALE = 8.0
FEATURES = 5
SOURCE = 4
POSITION = 4
_USUAL_COUNT = 33
"""Phonemes with their pads, about eight syllables."""
_MOST_COUNT = 200
"""More were never taught together."""
BINS = 512

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of a segment, T of them."""

    phoneme: NDArray[np.int64]
    """(T,): index of the phoneme each frame belongs to."""
    features: Array
    """(T, FEATURES): log2(F0 / 200 Hz) where voiced, voiced, energy / 8, place in phoneme, 1."""
    source: Array
    """(T, SOURCE): phase in cycles at mid-frame, cycles since the last, to the next, voiced."""


def position(count: int, shown: int | None = None) -> Array:
    """Return where tokens stand in a segment of `count`, pads included.

    The teacher has a style for every number of phonemes; between 5 and 40 they differ by half as
    much as a style is (for its sound) and by more than one (for its prosody).

    Args:
        count: tokens of the whole segment.
        shown: only so many from its beginning are asked for.

    Returns:
        (shown, POSITION): log(count / usual), its square, -0.5 to 0.5 through the segment, 1.
    """
    size = np.log(min(count, _MOST_COUNT) / _USUAL_COUNT)
    out = np.empty((count if shown is None else shown, POSITION), np.float32)
    out[:, 0] = size
    out[:, 1] = size**2
    out[:, 2] = (np.arange(len(out)) + 0.5) / count - 0.5
    out[:, 3] = 1
    return out


def ends(durations: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return where each phoneme ends, in whole frames: sums are rounded, not durations."""
    return np.rint(np.cumsum(durations, dtype=np.float64)).astype(np.int64)


def frames(
    phoneme_ends: NDArray[np.int64], f0: NDArray[np.floating], energy: NDArray[np.floating]
) -> Frames:
    """Lay out the frames.

    Args:
        phoneme_ends: end of each phoneme in frames, growing; the last is T.
        f0: (T,) raw Hz; at most 40 is unvoiced, but its cycles still count.
        energy: (T,) the teacher's energy.
    """
    total = int(phoneme_ends[-1])
    counts = np.diff(phoneme_ends, prepend=0)
    phoneme = np.repeat(np.arange(len(counts)), counts)
    begins = (phoneme_ends - counts)[phoneme]
    place = (np.arange(total) - begins + 0.5) / counts[phoneme]
    voiced = f0 > VOICED_HZ
    features = np.empty((total, FEATURES), np.float32)
    features[:, 0] = np.log2(np.where(voiced, f0, REFERENCE_HZ) / REFERENCE_HZ)
    features[:, 1] = voiced
    features[:, 2] = energy / ENERGY_SCALE
    features[:, 3] = place
    features[:, 4] = 1
    return Frames(phoneme, features, source(f0))


def source(f0: NDArray[np.floating]) -> Array:
    """Return the pulse train's parameters, (T, SOURCE), of a raw F0 in Hz."""
    cycles = f0.astype(np.float64) / FRAMES_PER_SECOND
    out = np.empty((len(f0), SOURCE), np.float32)
    out[:, 0] = np.cumsum(cycles) % 1
    out[:, 1] = cycles
    out[:-1, 2] = cycles[1:]
    out[-1:, 2] = cycles[-1:]
    out[:, 3] = f0 > VOICED_HZ
    return out


def contour(
    points: Array, phoneme_ends: NDArray[np.int64], durations: NDArray[np.floating], pitch: float
) -> tuple[Array, Array]:
    """Interpolate predicted points to frames.

    Args:
        points: (P, K, 3): log2(F0 / 200 Hz), logit of voicing, energy / 8, at K places of each
            phoneme.
        phoneme_ends: (P,) in whole frames.
        durations: (P,) in frames, unrounded.
        pitch: factor on F0.

    Returns:
        f0 (T,) in Hz, 0 where unvoiced, and energy (T,).
    """
    count = points.shape[1]
    stops = np.cumsum(durations, dtype=np.float64)
    places = (np.arange(count) + 0.5) / count
    times = ((stops - durations)[:, None] + durations[:, None] * places).reshape(-1)
    at = np.arange(int(phoneme_ends[-1])) + 0.5
    tone, voicing, energy = (np.interp(at, times, points[:, :, i].reshape(-1)) for i in range(3))
    f0 = np.where(voicing > 0, REFERENCE_HZ * np.exp2(tone) * pitch, 0.0)
    return f0.astype(np.float32), (energy * ENERGY_SCALE).astype(np.float32)
