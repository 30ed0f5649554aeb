"""Measures of speech: against the teacher's, and by DNSMOS on its own."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import librosa
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from speechmos import dnsmos
from visqol import VisqolApi

from utterd.engine.voices.small_frames import SAMPLE_RATE, VOICED_HZ

_PEAK = 0.7
_RATE = 16_000
_SHORTEST = _RATE

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scores:
    """DNSMOS: overall, and P.808; 1 to 5."""

    overall: float
    p808: float


def dnsmos_scores(samples: Array) -> Scores:
    """Score speech at 24 kHz, brought to a peak of 0.7.

    DNSMOS repeats what is shorter than nine seconds: a tenth of silence at both ends keeps the end
    of a sentence from running into its own beginning.
    """
    resampled = _at_16_khz(samples)
    if len(resampled) < _SHORTEST:
        resampled = np.pad(resampled, (0, _SHORTEST - len(resampled)))
    scores = _judge()(resampled * (_PEAK / max(1e-3, np.abs(resampled).max())), _RATE, False)
    return Scores(float(scores["ovrl_mos"]), float(scores["p808_mos"]))


@cache
def _judge() -> dnsmos.DNSMOS:
    """Load DNSMOS; one thread, so that it takes no core from others."""
    folder = Path(dnsmos.__file__).parent / "dnsmos_models"
    paths = folder / "sig_bak_ovr.onnx", folder / "model_v8.onnx"
    judge = dnsmos.DNSMOS(str(paths[0]), str(paths[1]))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    judge.onnx_sess, judge.p808_onnx_sess = (
        ort.InferenceSession(str(path), options) for path in paths
    )
    return judge


def visqol_score(heard: Array, wanted: Array) -> float:
    """Compare speech at 24 kHz by ViSQOL, whose speech mode hears up to 8 kHz.

    Returns:
        MOS-LQO, 1 to 5 (the same sound), by the polynomial of ViSQOL's `--use_lattice_model=false`.
    """
    ours, theirs = (_at_16_khz(samples).astype(np.float64) for samples in (heard, wanted))
    return float(_visqol().measure_from_arrays(theirs, ours, _RATE).moslqo)


@cache
def _visqol() -> VisqolApi:
    visqol = VisqolApi()
    visqol.create(mode="speech", use_lattice_model=False)
    return visqol


def _at_16_khz(samples: Array) -> Array:
    """Return samples at 16 kHz, with a tenth of a second of silence at both ends."""
    samples = np.pad(samples, SAMPLE_RATE // 10)
    return librosa.resample(samples, orig_sr=SAMPLE_RATE, target_sr=_RATE, res_type="soxr_hq")


def log_mel(samples: Array) -> Array:
    """Return 80 mel bands in dB, (80, T), hop 300, floored 80 dB below full scale."""
    mel = librosa.feature.melspectrogram(
        y=samples, sr=SAMPLE_RATE, n_fft=1024, hop_length=300, n_mels=80
    )
    return np.asarray(10 * np.log10(np.maximum(mel, 1e-8)), np.float32)


def mel_distance(heard: Array, wanted: Array) -> float:
    """Return the mean absolute difference of log-mel spectra in dB; both equally long."""
    return float(np.abs(log_mel(heard) - log_mel(wanted)).mean())


def f0_error(heard: Array, wanted: Array) -> tuple[float, float]:
    """Compare F0 tracks in Hz (0 to 40: unvoiced), equally long.

    Returns:
        Root mean square error in cents where both are voiced, and the share of frames of which
        only one is.
    """
    ours, theirs = heard > VOICED_HZ, wanted > VOICED_HZ
    both = ours & theirs
    wrong = float((ours != theirs).mean())
    if not both.any():
        return float("nan"), wrong
    cents = 1200 * np.log2(heard[both] / wanted[both])
    return float(np.sqrt(np.square(cents).mean())), wrong
