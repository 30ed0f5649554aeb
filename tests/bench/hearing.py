"""What a recording of the speaker's monitor says: when it sounded, and how long it was silent."""

import numpy as np
from numpy.typing import NDArray

from tests.sound_server import Capture

AUDIBLE = 10 ** (-50 / 20)
"""-50 dBFS."""


def silences(capture: Capture, from_ns: int, to_ns: int = 0) -> NDArray[np.int64]:
    """All runs without an audible sample.

    Args:
        capture: the recording.
        from_ns: what was before does not count, CLOCK_MONOTONIC.
        to_ns: nor what was after; 0 is the end of the recording.

    Returns:
        Shape (runs, 2): begin and end of each run of at least 1 ms, in frames of the recording.
    """
    begin = max(0, capture.frame_at(from_ns))
    end = len(capture.samples)
    if to_ns:
        end = max(begin, min(end, capture.frame_at(to_ns)))
    loud = np.flatnonzero(np.abs(capture.samples[begin:end]) > AUDIBLE) + begin
    edges = np.concatenate([[begin], loud, [end]])
    runs = np.stack([edges[:-1], edges[1:]], axis=1)
    return runs[runs[:, 1] - runs[:, 0] > capture.rate // 1000].astype(np.int64)


def longest_silence_ms(capture: Capture, from_ns: int, to_ns: int = 0) -> float:
    """The longest run without an audible sample; see `silences`."""
    runs = silences(capture, from_ns, to_ns)
    return float(np.max(runs[:, 1] - runs[:, 0])) / capture.rate * 1000 if len(runs) else 0.0


def first_sound_ns(capture: Capture, from_ns: int) -> int:
    """When the first audible sample after a time left the speaker, CLOCK_MONOTONIC; 0: none did."""
    begin = max(0, capture.frame_at(from_ns))
    loud = np.flatnonzero(np.abs(capture.samples[begin:]) > AUDIBLE)
    return capture.time_ns(begin + int(loud[0])) if len(loud) else 0
