"""The JSON beside a voice in Piper's format: what of it a voice needs."""

from pathlib import Path
from typing import Literal

import msgspec

from utterd.engine.voices.package import VoiceError


class Audio(msgspec.Struct, frozen=True):
    """How its samples come."""

    sample_rate: int
    """Hz."""


class Espeak(msgspec.Struct, frozen=True):
    """What phonemises its texts."""

    voice: str


class Inference(msgspec.Struct, frozen=True):
    """Scales of the network: of the noise in the samples, of all lengths, of the noise in them."""

    noise_scale: float = 0.667
    length_scale: float = 1.0
    noise_w: float = 0.8


class PiperConfig(msgspec.Struct, frozen=True):
    """The JSON as a whole."""

    audio: Audio
    espeak: Espeak
    phoneme_id_map: dict[str, list[int]]
    inference: Inference = Inference()
    phoneme_type: Literal["espeak"] = "espeak"
    num_speakers: int = 1
    speaker_id_map: dict[str, int] = {}

    def language_code(self) -> str:
        """BCP 47, the language alone: `en` for `en-us`."""
        language = self.espeak.voice.replace("_", "-").split("-")[0].lower()
        return "zh" if language == "cmn" else language


def read_config(path: Path) -> PiperConfig:
    """Read and check it.

    Raises:
        VoiceError: it isn't one, or of a kind that can't be phonemised here.
    """
    try:
        config = msgspec.json.decode(path.read_bytes(), type=PiperConfig)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise VoiceError(f"{path} is no configuration of a Piper voice: {error}") from None
    except OSError as error:
        raise VoiceError(f"{path} can't be read: {error.strerror}") from None
    missing = [symbol for symbol in "_^$" if symbol not in config.phoneme_id_map]
    if missing:
        raise VoiceError(f"{path}: phoneme_id_map lacks {' '.join(missing)}")
    return config
