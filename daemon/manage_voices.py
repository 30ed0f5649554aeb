"""`utterd voices list | add | remove | benchmark | forget`."""

import argparse
import json
import sys
from collections.abc import Callable

import msgspec

from utterd.daemon import qualities
from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config
from utterd.daemon.measure_voices import MeasureError, measure, table
from utterd.daemon.voices import Voices
from utterd.engine.cache.database import clear
from utterd.engine.voices import install
from utterd.engine.voices.package import BUILT_IN, VoiceError

_BUSY = 0.7
"""Load average per core above which figures are not believed."""


def list_installed(options: argparse.Namespace, config: Config) -> int:
    """Print the voices there are."""
    voices = Voices(config.data_dir, config.engine)
    found = voices.describe()
    for name, problem in voices.problems().items():
        print(f"utterd: the voice {name} can't be used: {problem}", file=sys.stderr)
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return 0
    for voice in found:
        mark = "*" if voice["default"] else " "
        print(
            f"{mark} {voice['name']:<20} {voice['kind']:<8} {voice['sample_rate']} Hz  "
            f"{voice['licence']}  {', '.join(voice['languages'])}  "
            f"{_speakers(voice['speakers'], voice['default_speaker'])}"
            + (f"  {', '.join(voice['qualities'])}" if len(found) > 1 else "")
        )
    if voices.stale and len(found) > 1:
        print(f"utterd: {voices.stale}", file=sys.stderr)
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
    name = package.manifest.name
    print(f"added the voice {name} to {package.folder}", file=sys.stderr)
    if Voices(config.data_dir, config.engine).default().partition("/")[0] != name:
        print(
            f"it speaks where it is asked for; to make it the default, set voice = {name!r} "
            "in [engine], or let `utterd voices benchmark` choose",
            file=sys.stderr,
        )
    return 0


def remove(options: argparse.Namespace, config: Config) -> int:
    """Delete a voice."""
    try:
        install.remove(options.name, config.data_dir)
        clear(config.cache_dir, options.name)
    except (VoiceError, OSError) as error:
        print(f"utterd: {error}", file=sys.stderr)
        return 1
    again = options.name == BUILT_IN.name
    print(
        f"removed the voice {options.name}"
        + ("; the one of this name that comes with utterd speaks again" if again else ""),
        file=sys.stderr,
    )
    return 0


def benchmark(options: argparse.Namespace, config: Config) -> int:
    """Measure the installed voices, with a progress bar, and choose which is which quality."""
    voices = Voices(config.data_dir, config.engine)

    def leave_out(reason: str) -> None:
        _end_bar()
        print(f"utterd: {reason}; it is left out", file=sys.stderr)

    try:
        found = measure(config, voices, _bar, leave_out)
        qualities.write(config.data_dir, found)
    except (MeasureError, OSError) as error:
        _end_bar()
        print(f"utterd: {error}", file=sys.stderr)
        return 1
    _end_bar()
    if options.json:
        print(msgspec.json.encode(found).decode())
    else:
        print("\n".join(table(found)))
    if found.load > _BUSY * found.machine.cores:
        print(
            f"utterd: the machine was busy (load {found.load:.1f}): measure again when it is not",
            file=sys.stderr,
        )
    return 0


def forget(options: argparse.Namespace, config: Config) -> int:
    """Delete what was said from the cache: a daemon's, where one runs, and what is on disk."""
    deleted = 0
    try:
        with Client(config, starting_s=0.0) as client:
            deleted = client.call("forget")["deleted"]
    except DaemonError as error:
        if error.code != "unavailable":
            raise
    deleted += clear(config.cache_dir)
    if options.json:
        print(json.dumps({"deleted": deleted}))
    else:
        print(f"forgot what was said; entries on disk: {deleted}", file=sys.stderr)
    return 0


def _speakers(names: list[str], default: str) -> str:
    return f"{len(names)} speakers (default {default})" if len(names) > 1 else f"speaker {default}"


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


ACTIONS: dict[str, Callable[[argparse.Namespace, Config], int]] = {
    "list": list_installed,
    "add": add,
    "remove": remove,
    "benchmark": benchmark,
    "forget": forget,
}
"""What `utterd voices ACTION` runs."""
