"""A key is the same for what sounds the same, and for nothing else."""

import dataclasses
import shutil
import subprocess
import sys

import msgspec
import pytest

from tests.engine.saying import segment
from utterd.engine.cache.keys import Keys, identity
from utterd.engine.frontend.contract import Mark, Phoneme, Syllable, Word
from utterd.engine.voices import espeak
from utterd.engine.voices.contract import Controls
from utterd.engine.voices.package import VoicePackage, read

SPOKEN = segment("ni xau")
KEYS = Keys(b"s" * 32, b"voice")


def test_its_place_in_the_text_does_not_matter():
    moved = dataclasses.replace(
        SPOKEN,
        start=90,
        end=96,
        phonemes=tuple(Phoneme(p.symbol, p.start + 90, p.end + 90) for p in SPOKEN.phonemes),
        words=tuple(Word(w.start + 90, w.end + 90, w.first) for w in SPOKEN.words),
        pause_ms=900,
        volume=0.5,
    )
    assert KEYS.of(moved, Controls()) == KEYS.of(SPOKEN, Controls())


@pytest.mark.parametrize(
    "change",
    [
        {"text": "nihao"},
        {"language": "zh"},
        {"phonemes": SPOKEN.phonemes[:-1]},
        {"words": SPOKEN.words[:-1]},
        {"marks": ()},
        {"marks": (Mark("m", 1),)},
        {"syllables": (Syllable("你", "ni3", "ni2", 0, 1),)},
    ],
    ids=str,
)
def test_what_a_voice_reads_matters(change):
    assert KEYS.of(dataclasses.replace(SPOKEN, **change), Controls()) != KEYS.of(SPOKEN, Controls())


@pytest.mark.parametrize(
    "controls", [Controls(rate=1.001), Controls(pitch=1.1), Controls(speaker="x")], ids=str
)
def test_how_it_is_said_matters(controls):
    assert KEYS.of(SPOKEN, controls) != KEYS.of(SPOKEN, Controls())


def test_voice_and_secret_matter():
    known = {
        Keys(secret, voice).of(SPOKEN, Controls())
        for secret in (b"s" * 32, b"t" * 32)
        for voice in (b"voice", b"other")
    }
    assert len(known) == 4


def test_the_identity_is_of_package_runtime_and_threads(package, tmp_path):
    same = identity(package, "cpu", 1)
    assert identity(package, "cpu", 1) == same
    shutil.copytree(package.folder, tmp_path / "voice")
    loaded = read(tmp_path / "voice")
    assert identity(loaded, "cpu", 1) == same
    manifest = tmp_path / "voice" / "voice.toml"
    text = manifest.read_text()
    manifest.write_text(text.replace('sha256 = "', 'sha256 = "0', 1))
    assert identity(loaded, "cpu", 1) == same, "whatever has taken its place since"
    others = {
        identity(read(tmp_path / "voice"), "cpu", 1),
        identity(package, "gpu", 1),
        identity(package, "cpu", 2),
    }
    assert len(others | {same}) == 4


def test_where_espeak_makes_the_phonemes_its_release_matters(package, monkeypatch):
    manifest = msgspec.structs.replace(package.manifest, kind="vits")
    spelt = VoicePackage(package.folder, manifest)
    assert espeak.version()[0].isdigit()
    same = identity(spelt, "cpu", 1)
    ours = identity(package, "cpu", 1)
    monkeypatch.setattr(espeak, "version", lambda: "0.1")
    assert identity(spelt, "cpu", 1) != same
    assert identity(package, "cpu", 1) == ours


UPDATED = """
import sys
from pathlib import Path
from utterd.engine import nursery
from utterd.engine.cache import keys
nursery._prepare()
before = keys.code()
keys._ROOM = Path(sys.argv[1])
assert keys.code() == before, "a worker that is forked now runs what was imported before"
keys.code.cache_clear()
assert keys.code() != before
"""


def test_a_worker_forked_after_an_update_is_known_by_the_code_it_runs(tmp_path):
    (tmp_path / "voices").mkdir()
    (tmp_path / "voices" / "shape.py").write_text("another one")
    subprocess.run([sys.executable, "-c", UPDATED, str(tmp_path)], check=True)
