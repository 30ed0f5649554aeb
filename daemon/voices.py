"""Which voice speaks: the packages there are, their speakers, and the choice by name or quality."""

from pathlib import Path
from typing import Any

from utterd.daemon import qualities
from utterd.daemon.config import Engine
from utterd.daemon.protocol import ProtocolError, Speech
from utterd.engine.voices import install, package


class Voices:
    """The voice that comes with utterd, and those that were added.

    Args:
        data_dir: may hold `voices/NAME/voice.toml`.
        config: the defaults.
    """

    def __init__(self, data_dir: Path, config: Engine) -> None:
        self._data_dir = data_dir
        self._config = config
        self.preferred = ""
        """What `prefer` was told."""
        self._seen_ns = -1
        self._listed: dict[str, install.Listed] = {}
        self._installed: dict[str, package.VoicePackage] = {}
        self._measured_seen: tuple[int, int] = (-1, -1)
        self._measured: dict[qualities.Quality, str] = {}
        self.stale = ""
        """Why the voices should be measured again; as of the last look."""

    def installed(self) -> dict[str, package.VoicePackage]:
        """Packages by name; what can't be read is left out. Read again when the folder changes."""
        changed_ns = _changed_ns(self._data_dir / "voices")
        if changed_ns != self._seen_ns:
            self._listed = {one.name: one for one in install.list_voices(self._data_dir)}
            self._installed = {
                name: one.package for name, one in self._listed.items() if one.package is not None
            }
            self._seen_ns = changed_ns
        return self._installed

    def problems(self) -> dict[str, str]:
        """What is wrong with those that can't be read, by name."""
        self.installed()
        return {name: one.problem for name, one in self._listed.items() if one.problem}

    def folder(self, name: str) -> Path:
        """Where a voice lies; where it would lie if it is gone since it was asked for."""
        self.installed()
        listed = self._listed.get(name)
        return listed.folder if listed else self._data_dir / "voices" / name

    def default(self) -> str:
        """`NAME` or `NAME/SPEAKER` of the default voice.

        As set, as configured, the balanced one as measured, the one that comes with utterd.
        """
        return (
            self.preferred
            or self._config.voice
            or self.measured().get("balanced")
            or package.BUILT_IN.name
        )

    def prefer(self, voice: str) -> None:
        """Make a voice the default until the daemon ends."""
        self.preferred = voice

    def measured(self) -> dict[qualities.Quality, str]:
        """Voices by quality as `utterd voices benchmark` chose them, where that still holds."""
        installed = self.installed()
        changed_ns = _changed_ns(self._data_dir / qualities.FILE)
        if (changed_ns, self._seen_ns) != self._measured_seen:
            self._measured_seen = changed_ns, self._seen_ns
            found = qualities.read(self._data_dir)
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
        if problem := self.problems().get(name):
            raise ProtocolError(
                "unknown_voice", f"the voice {name} can't be used: {problem}", "voice"
            )
        if name not in installed:
            known = ", ".join(installed) or "none"
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


def _changed_ns(path: Path) -> int:
    """When it was changed; 0 where it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
