"""Kokoro-82M as a teacher: phonemes to audio, with the inner tensors a student learns from."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

SAMPLE_RATE = 24_000
DURATION_SAMPLES = 600
"""One unit of the teacher's durations: 25 ms."""
_INPUTS = ("tokens", "style", "speed")
_PROSODY = (
    "/encoder/Clip_output_0",
    "/encoder/F0_proj/Conv_output_0",
    "/encoder/N_proj/Conv_output_0",
)


@dataclass(frozen=True, slots=True)
class Rendering:
    """What the teacher said. Lengths: durations sum to frames / 2; audio is frames x 300."""

    audio: NDArray[np.float32]
    """Empty of a teacher that is silent."""
    durations: NDArray[np.int16]
    """Per token, pads included, in units of 25 ms."""
    f0: NDArray[np.float32]
    """Raw F0 in Hz per frame (12.5 ms); unvoiced ones hold small values near 9 Hz, which stay."""
    energy: NDArray[np.float32]
    """Log-like energy per frame."""


class Teacher:
    """One loaded teacher, one thread.

    Args:
        folder: of the teacher.
        speaker: its voice.
        silent: it only says how it would speak, in a fifteenth of the time.
    """

    def __init__(self, folder: Path, speaker: str, *, silent: bool = False) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = folder / "model.onnx"
        model = _without_sound(path) if silent else str(path)
        self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._silent = silent
        table = np.fromfile(folder / "voices" / f"{speaker}.bin", np.float32)
        self._styles = table.reshape(-1, 1, 256)

    def speak(self, tokens: NDArray[np.int16], speed: float = 1.0) -> Rendering:
        """Speak phoneme ids, the 0 of both ends included (at least three ids)."""
        feeds = {
            "tokens": tokens.astype(np.int64)[None],
            "style": self._styles[len(tokens) - 3],
            "speed": np.array([speed], np.float32),
        }
        outputs = _PROSODY if self._silent else (*_PROSODY, "audio")
        durations, f0, energy, *sound = self._session.run(outputs, feeds)
        whole = durations[0].round().astype(np.int16)
        audio = sound[0] if sound else np.zeros(0, np.float32)
        if sound and int(whole.sum()) * DURATION_SAMPLES != audio.size:
            raise ValueError(
                f"the teacher's durations sum to {int(whole.sum()) * DURATION_SAMPLES} samples but"
                f" its audio has {audio.size}: use the float32 model of the Kokoro voice builder"
            )
        return Rendering(audio.reshape(-1), whole, f0.reshape(-1), energy.reshape(-1))


def _without_sound(path: Path) -> bytes:
    """Return the part of the teacher's graph that ends with durations, F0 and energy."""
    part = onnx.utils.Extractor(onnx.load(path)).extract_model(list(_INPUTS), list(_PROSODY))
    whole: bytes = part.SerializeToString()
    return whole


def vocabulary(folder: Path) -> dict[str, int]:
    """Return the teacher's ids of its phoneme symbols."""
    content: dict[str, dict[str, int]] = json.loads((folder / "vocab.json").read_text("utf-8"))
    return content["vocab"]


def checksum(folder: Path) -> str:
    """Return the SHA-256 of the teacher's model."""
    with (folder / "model.onnx").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
