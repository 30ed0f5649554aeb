"""From a folder to a voice that speaks."""

from collections.abc import Callable
from pathlib import Path

from utterd.engine.runtimes.contract import Runtime, RuntimeFailedError
from utterd.engine.voices import package
from utterd.engine.voices.contract import Voice
from utterd.engine.voices.kokoro import Kokoro
from utterd.engine.voices.package import VoiceError, VoicePackage
from utterd.engine.voices.small import Small
from utterd.engine.voices.vits import Vits

_KINDS: dict[str, Callable[[VoicePackage, str, Runtime, int], Voice]] = {
    "kokoro": Kokoro,
    "small": Small,
    "vits": Vits,
}


def load(
    folder: Path, speaker: str, runtime: Runtime, threads: int, *, verify: bool = True
) -> Voice:
    """Check a voice package and load it.

    Args:
        folder: holds `voice.toml`.
        speaker: one of the package's; empty for its default.
        runtime: what runs its graphs.
        threads: of one run; at least 1.
        verify: compare its files with their checksums.

    Raises:
        VoiceError: the package is damaged, of an unknown kind, or lacks the speaker.
    """
    voice = package.read(folder)
    manifest = voice.manifest
    if manifest.kind not in _KINDS:
        raise VoiceError(f"voice {manifest.name} is of kind {manifest.kind}: update utterd for it")
    if speaker and speaker not in manifest.speakers:
        known = ", ".join(manifest.speakers)
        raise VoiceError(f"voice {manifest.name} has no speaker {speaker!r}; it has {known}")
    if verify:
        voice.verify()
    try:
        return _KINDS[manifest.kind](voice, speaker or manifest.default_speaker, runtime, threads)
    except RuntimeFailedError as error:
        raise VoiceError(f"voice {manifest.name}: {error}") from None
