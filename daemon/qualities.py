"""`fast`, `balanced`, `high`: which voice each of them is, decided by what was measured here.

`utterd voices benchmark` measures and keeps what it found beside the voices. It holds for this
machine, these releases and these very voices; where one of them is another one now, that is told,
and what is still as it was measured is used until it is measured again.
"""

import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

from utterd.engine.voices.package import MANIFEST, VoicePackage, sha256

FILE = "benchmark.json"
FORMAT = 1

Quality = Literal["fast", "balanced", "high"]
QUALITIES: tuple[Quality, ...] = ("fast", "balanced", "high")

_WANTED = ("zh", "en")
"""A voice that speaks both is better than one that speaks one, Chinese better than English."""
_NATURAL = {"vits": 0, "small": 1, "kokoro": 2}
"""Kinds by how natural they sound. Of one kind the slower is taken for the better: it is larger."""
_SUSTAINED = 0.8
"""Real-time factor up to which a voice keeps up with its own speech, with something to spare."""
_PROMPT_MS = 150.0
"""First samples that are not felt as waiting."""
_RELAXED = 0.35
"""Real-time factor that leaves the machine to others."""


class Machine(msgspec.Struct, frozen=True):
    """What the figures hold for."""

    processor: str
    cores: int
    utterd: str
    onnxruntime: str


class Measured(msgspec.Struct, frozen=True):
    """What a voice was found to do."""

    name: str
    identity: str
    """SHA-256 of its manifest, which has the checksums of its files."""
    kind: str
    languages: list[str]
    runtime: str
    ready_s: float
    """From nothing to warm."""
    first_ms: float
    """Text to first samples, the median of several sentences."""
    real_time_factor: float
    """Time of synthesis per time of speech."""
    rss_bytes: int


class Benchmark(msgspec.Struct, frozen=True):
    """The file."""

    format: int
    machine: Machine
    unix_s: float
    load: float
    """Load average when it began; figures of a busy machine are too high."""
    voices: list[Measured]
    chosen: dict[Quality, str]
    left_out: dict[str, str] = {}
    """Identities of voices that could not speak, by name."""


def machine() -> Machine:
    """This one, as it is now."""
    releases = (metadata.version(name) for name in ("utterd", "onnxruntime"))
    return Machine(_processor(), len(os.sched_getaffinity(0)), *releases)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.machine()
    names = ("model name", "CPU implementer", "CPU part")
    found = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
    return " ".join(found[name] for name in names if name in found) or platform.machine()


def identity(voice: VoicePackage) -> str:
    """What changes with the voice.

    Raises:
        OSError: its manifest can't be read.
    """
    return sha256(voice.folder / MANIFEST)


def choose(measured: Sequence[Measured]) -> dict[Quality, str]:
    """Which voice is which quality.

    Among the voices that speak most of what is wanted: `fast` has the first samples soonest;
    `high` is the most natural that keeps up with its own speech; `balanced` is the most natural
    whose beginning is not felt as waiting and that leaves the machine to others. Where no voice
    does, the fast one stands in.
    """
    if not measured:
        return {}
    most = max(_spoken(one) for one in measured)
    able = [one for one in measured if _spoken(one) == most]
    fast = min(able, key=lambda one: (one.first_ms, one.real_time_factor))
    sustained = [one for one in able if one.real_time_factor <= _SUSTAINED]
    prompt = [
        one for one in sustained if one.first_ms <= _PROMPT_MS and one.real_time_factor <= _RELAXED
    ]
    return {
        "fast": fast.name,
        "balanced": max(prompt, key=_natural, default=fast).name,
        "high": max(sustained, key=_natural, default=fast).name,
    }


def _spoken(one: Measured) -> int:
    """Higher for what speaks more of what is wanted."""
    weights = range(len(_WANTED), 0, -1)
    return sum(w for language, w in zip(_WANTED, weights, strict=True) if language in one.languages)


def _natural(one: Measured) -> tuple[int, float]:
    return _NATURAL.get(one.kind, 0), one.real_time_factor


def read(data_dir: Path) -> Benchmark | None:
    """What was measured; None if nothing was, or it can't be read."""
    try:
        found = msgspec.json.decode((data_dir / FILE).read_bytes(), type=Benchmark)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.format == FORMAT else None


def write(data_dir: Path, benchmark: Benchmark) -> None:
    """Keep what was measured, whole or not at all.

    Raises:
        OSError: it can't be written.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    unfinished = data_dir / f".{FILE}.{os.getpid()}"
    try:
        unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(benchmark)) + b"\n")
        unfinished.replace(data_dir / FILE)
    finally:
        unfinished.unlink(missing_ok=True)


def stale(benchmark: Benchmark | None, installed: Mapping[str, VoicePackage]) -> str:
    """Why it should be measured again; "" if what was measured is what is here."""
    again = "run `utterd voices benchmark`"
    if benchmark is None:
        return f"the voices were not measured on this machine: {again}"
    if benchmark.machine != machine():
        return f"the voices were measured on another machine, or with another release: {again}"
    measured = {one.name: one.identity for one in benchmark.voices}
    if measured | benchmark.left_out != _identities(installed):
        return f"the voices are not those that were measured: {again}"
    return ""


def valid(benchmark: Benchmark | None, installed: Mapping[str, VoicePackage]) -> dict[Quality, str]:
    """What was chosen on this machine, of voices that are still those that were measured."""
    if benchmark is None or benchmark.machine != machine():
        return {}
    now = _identities(installed)
    same = {one.name for one in benchmark.voices if now.get(one.name) == one.identity}
    return {quality: name for quality, name in benchmark.chosen.items() if name in same}


def _identities(installed: Mapping[str, VoicePackage]) -> dict[str, str]:
    found = {}
    for name, voice in installed.items():
        try:
            found[name] = identity(voice)
        except OSError:  # it is being removed
            continue
    return found
