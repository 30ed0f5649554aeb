"""Sound icons: read, mixed to one channel, resampled, or refused by name."""

import numpy as np
import pytest
import soundfile

from utterd.engine.sounds import SoundError, read

RATE = 24_000


def tone(rate: int, seconds: float = 0.5) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate)).astype("f4")


@pytest.mark.parametrize(("name", "rate"), [("a.wav", 24_000), ("b.flac", 44_100), ("c.wav", 8000)])
def test_a_file_is_read_at_the_rate_of_the_voice(tmp_path, name, rate):
    left = tone(rate)
    soundfile.write(tmp_path / name, np.stack([left, np.zeros_like(left)], axis=1), rate)
    samples = read(tmp_path / name, RATE)
    assert samples.dtype == np.float32
    assert len(samples) == pytest.approx(RATE * 0.5, abs=2)
    middle = slice(RATE // 8, RATE // 4)
    assert np.allclose(samples[middle], tone(RATE)[middle] / 2, atol=5e-3)


def test_what_is_no_sound_is_named(tmp_path):
    (tmp_path / "x.wav").write_bytes(b"RIFF no sound")
    with pytest.raises(SoundError, match=r"x\.wav can't be played"):
        read(tmp_path / "x.wav", RATE)
    with pytest.raises(SoundError, match=r"y\.wav can't be played"):
        read(tmp_path / "y.wav", RATE)


def test_a_long_file_is_refused(tmp_path):
    soundfile.write(tmp_path / "long.flac", np.zeros(8000 * 61, "f4"), 8000)
    with pytest.raises(SoundError, match="longer than 60 s"):
        read(tmp_path / "long.flac", RATE)
