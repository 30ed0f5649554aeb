"""Which voice speaks: installed packages, their speakers, and the choice by name or quality."""

from pathlib import Path
from typing import Any

from utterd.daemon import qualities
from utterd.daemon.config import Engine
from utterd.daemon.protocol import ProtocolError, Speech
from utterd.engine.voices import install, package


class Voices:
    """The installed voices.

    Args:
        data_dir: holds `voices/NAME/voice.toml`.
        config: the defaults.
    """

    def __init__(self, data_dir: Path, config: Engine) -> None:
        self.folder = data_dir / "voices"
        self._config = config
        self.preferred = ""
        """What `prefer` was told."""
        self._seen_ns = -1
        self._installed: dict[str, package.VoicePackage] = {}
        self._measured_seen: tuple[int, int] = (-1, -1)
        self._measured: dict[qualities.Quality, str] = {}
        self.stale = ""
        """Why the voices should be measured again; as of the last look."""

    def installed(self) -> dict[str, package.VoicePackage]:
        """Packages by name; what can't be read is left out. Read again when the folder changes."""
        try:
            changed_ns = self.folder.stat().st_mtime_ns
        except OSError:
            return {}
        if changed_ns != self._seen_ns:
            listed = install.list_voices(self.folder.parent)
            self._installed = {one.name: one.package for one in listed if one.package is not None}
            self._seen_ns = changed_ns
        return self._installed

    def default(self) -> str:
        """`NAME` or `NAME/SPEAKER` of the default voice; empty if nothing is installed.

        As set, as configured, the balanced one as measured, `kokoro`, the first by name.
        """
        if self.preferred or self._config.voice:
            return self.preferred or self._config.voice
        if (balanced := self.measured().get("balanced")) is not None:
            return balanced
        installed = self.installed()
        if "kokoro" in installed:
            return "kokoro"
        return next(iter(installed), "")

    def prefer(self, voice: str) -> None:
        """Make a voice the default until the daemon ends."""
        self.preferred = voice

    def measured(self) -> dict[qualities.Quality, str]:
        """Voices by quality as `utterd voices benchmark` chose them, where that still holds."""
        installed = self.installed()
        try:
            changed_ns = (self.folder.parent / qualities.FILE).stat().st_mtime_ns
        except OSError:
            changed_ns = 0
        if (changed_ns, self._seen_ns) != self._measured_seen:
            self._measured_seen = changed_ns, self._seen_ns
            found = qualities.read(self.folder.parent)
            self._measured = qualities.valid(found, installed)
            self.stale = qualities.stale(found, installed)
        return self._measured

    def of_quality(self, quality: qualities.Quality) -> str:
        """`NAME` or `NAME/SPEAKER`: as configured, as measured, or the default voice."""
        configured: str = getattr(self._config, quality)
        return configured or self.measured().get(quality, "") or self.default()

    def choose(self, command: Speech) -> tuple[str, str]:
        """Name of the package and speaker ("" for its default) that a command asks for.

        Raises:
            ProtocolError: `unknown_voice`.
        """
        wanted = command.voice
        if not wanted and command.quality:
            wanted = self.of_quality(command.quality)
        return self.resolve(wanted or self.default())

    def resolve(self, wanted: str) -> tuple[str, str]:
        """Split and check `NAME` or `NAME/SPEAKER`.

        Raises:
            ProtocolError: `unknown_voice`, naming those there are.
        """
        name, _, speaker = wanted.partition("/")
        installed = self.installed()
        if not installed:
            raise ProtocolError(
                "unknown_voice", "no voice is installed; run `utterd voices add kokoro`", "voice"
            )
        if name not in installed:
            known = ", ".join(installed)
            raise ProtocolError(
                "unknown_voice", f"no voice {name!r} is installed (installed: {known})", "voice"
            )
        speakers = installed[name].manifest.speakers
        if speaker and speaker not in speakers:
            raise ProtocolError(
                "unknown_voice",
                f"voice {name!r} has no speaker {speaker!r} (it has: {', '.join(speakers)})",
                "voice",
            )
        return name, speaker

    def describe(self) -> list[dict[str, Any]]:
        """As the `voices` command shows them."""
        default = self.default().partition("/")[0]
        named = {q: self.of_quality(q).partition("/")[0] for q in qualities.QUALITIES}
        return [
            {
                "name": name,
                "kind": found.manifest.kind,
                "languages": list(found.manifest.languages),
                "speakers": list(found.manifest.speakers),
                "default_speaker": found.manifest.default_speaker,
                "sample_rate": found.manifest.sample_rate,
                "licence": found.manifest.licence,
                "default": name == default,
                "qualities": [quality for quality, voice in named.items() if voice == name],
            }
            for name, found in self.installed().items()
        ]
