"""What the doctor says of voices: each file against its manifest, and what mends a damaged one."""

import shutil
from pathlib import Path

import pytest

from utterd.daemon import doctor
from utterd.engine.voices import install, package
from utterd.engine.voices.package import BUILT_IN
from utterd.sysconfig.check import Finding, Scene, Verdict


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(data=tmp_path / "data")


def added(scene: Scene) -> Path:
    """A voice whole, of which a test may damage a file."""
    folder = scene.data / "voices" / "mine"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(BUILT_IN, folder)
    return folder


def found(scene: Scene) -> dict[str, Finding]:
    return {finding.name: finding for finding in doctor.voices(scene)}


def test_all_voices_are_looked_at(scene: Scene) -> None:
    assert set(found(scene)) == {"voice small"}
    added(scene)
    assert {name: one.verdict for name, one in found(scene).items()} == {
        "voice mine": Verdict.FINE,
        "voice small": Verdict.FINE,
    }


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


FAULTS = {
    "SHA-256 differs": lambda folder: damage(folder / "decode.onnx"),
    "7 bytes instead of": lambda folder: (folder / "decode.onnx").write_bytes(b"weights"),
    "No such file": lambda folder: (folder / "encode.onnx").unlink(),
    "no voice manifest": lambda folder: (folder / "voice.toml").write_text("name = 3"),
}


@pytest.mark.parametrize("words", FAULTS)
def test_a_damaged_voice_is_added_again(scene: Scene, words: str) -> None:
    FAULTS[words](added(scene))
    finding = found(scene)["voice mine"]
    assert finding.verdict is Verdict.BROKEN
    assert words in finding.found
    assert finding.mend == "utterd voices remove mine && utterd voices add mine"


def test_a_damaged_voice_before_the_built_in_one_gives_it_the_place_back(scene: Scene) -> None:
    added(scene).rename(scene.data / "voices" / "small")
    damage(scene.data / "voices" / "small" / "decode.onnx")
    assert found(scene)["voice small"].mend == "utterd voices remove small"


@pytest.mark.parametrize("words", FAULTS)
def test_a_damaged_installation_is_made_again(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    own = tmp_path / "package" / "small"
    shutil.copytree(BUILT_IN, own)
    for module in (package, install, doctor):
        monkeypatch.setattr(module, "BUILT_IN", own)
    FAULTS[words](own)
    finding = found(scene)["voice small"]
    assert finding.verdict is Verdict.BROKEN
    assert words in finding.found
    assert finding.found.endswith("install utterd again")
    assert finding.mend == "pip install --force-reinstall utterd"
