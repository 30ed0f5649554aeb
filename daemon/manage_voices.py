"""`utterd voices list | add | remove`."""

import argparse
import json
import sys

from utterd.daemon.config import Config
from utterd.daemon.voices import Voices
from utterd.engine.voices import install
from utterd.engine.voices.package import VoiceError


def list_installed(options: argparse.Namespace, config: Config) -> int:
    """Print the installed voices."""
    found = Voices(config.data_dir, config.engine).describe()
    for one in install.list_voices(config.data_dir):
        if one.package is None:
            print(f"utterd: the voice {one.name} can't be used: {one.problem}", file=sys.stderr)
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return 0
    if not found:
        print(f"no voice in {config.data_dir / 'voices'}; add one with `utterd voices add kokoro`")
    for voice in found:
        mark = "*" if voice["default"] else " "
        print(
            f"{mark} {voice['name']:<20} {voice['kind']:<8} {voice['sample_rate']} Hz  "
            f"{voice['licence']}  {', '.join(voice['languages'])}  "
            f"{len(voice['speakers'])} speakers (default {voice['default_speaker']})"
        )
    return 0


def add(options: argparse.Namespace, config: Config) -> int:
    """Install a voice, with a progress bar."""
    try:
        package = install.add(options.source, config.data_dir, _bar)
    except VoiceError as error:
        _end_bar()
        print(f"utterd: {error}", file=sys.stderr)
        return 1
    _end_bar()
    print(f"added the voice {package.manifest.name} to {package.folder}", file=sys.stderr)
    return 0


def remove(options: argparse.Namespace, config: Config) -> int:
    """Delete a voice."""
    try:
        install.remove(options.name, config.data_dir)
    except VoiceError as error:
        print(f"utterd: {error}", file=sys.stderr)
        return 1
    print(f"removed the voice {options.name}", file=sys.stderr)
    return 0


def _end_bar() -> None:
    if sys.stderr.isatty():
        print(file=sys.stderr)


def _bar(step: str, fraction: float) -> None:
    if sys.stderr.isatty():
        filled = int(fraction * 30)
        bar = "#" * filled + "-" * (30 - filled)
        print(f"\r{step:<32.32} [{bar}] {fraction:4.0%}", end="", file=sys.stderr, flush=True)
    elif fraction == 0.0:
        print(step, file=sys.stderr, flush=True)
