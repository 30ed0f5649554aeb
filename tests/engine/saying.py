"""Segments and measures for the tests of voices."""

import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.contract import Mark, Phoneme, Segment, Word


def segment(symbols: str, **fields: object) -> Segment:
    """A segment that says these symbols, its words where spaces stand between them."""
    phonemes = tuple(Phoneme(symbol, i, i + 1) for i, symbol in enumerate(symbols))
    starts = [i for i in range(len(symbols)) if i == 0 or symbols[i - 1] == " "]
    words = tuple(
        Word(begin, end, begin)
        for begin, end in zip(starts, [*starts[1:], len(symbols)], strict=True)
    )
    values: dict[str, object] = {
        "text": symbols,
        "start": 0,
        "end": len(symbols),
        "language": "en",
        "syllables": (),
        "phonemes": phonemes,
        "words": words if symbols else (),
        "pause_ms": 200,
        "marks": (Mark("middle", len(symbols) // 2),),
    }
    return Segment(**(values | fields))


def never() -> bool:
    return False


def pitch_hz(samples: NDArray[np.float32], rate: int) -> float:
    """Median F0 of the voiced frames, by autocorrelation between 60 and 500 Hz."""
    size, found = rate // 20, []
    shortest, longest = rate // 500, rate // 60
    for begin in range(0, len(samples) - size, size // 2):
        frame = samples[begin : begin + size].astype(np.float64)
        if np.abs(frame).max() < 0.05:
            continue
        frame -= frame.mean()
        spectrum = np.abs(np.fft.rfft(frame, 2 * size)) ** 2
        correlation = np.fft.irfft(spectrum)[:size]
        lag = shortest + int(correlation[shortest:longest].argmax())
        if correlation[lag] > 0.5 * correlation[0]:
            found.append(rate / lag)
    return float(np.median(found))


def log_spectrum(samples: NDArray[np.float32], size: int = 1024) -> NDArray[np.float64]:
    """Log magnitudes, one row a quarter of `size`."""
    begins = range(0, len(samples) - size, size // 4)
    frames = np.stack([samples[b : b + size] * np.hanning(size) for b in begins])
    return np.log(np.abs(np.fft.rfft(frames)) + 1e-2)
