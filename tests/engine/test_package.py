"""A damaged voice package is refused in one line that names the file."""

import shutil
from pathlib import Path

import pytest

from utterd.engine.voices import package
from utterd.engine.voices.package import FORMAT, Manifest, VoiceError


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    folder = tmp_path / "v"
    (folder / "speakers").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"graph" * 1000)
    (folder / "speakers" / 'a "b".bin').write_bytes(b"\0" * 40)
    manifest = Manifest(
        format=FORMAT,
        name="v",
        kind="vits",
        languages=("zh", "en"),
        sample_rate=24_000,
        licence='Apache-2.0 "or" so',
        origin="café\\测试",
        phonemes="espeak",
        timings="exact",
        speakers=("a", "b"),
        default_speaker="b",
        files=package.describe_files(folder),
    )
    package.write(folder, manifest)
    return folder


def test_what_was_written_is_read(voice: Path):
    read = package.read(voice)
    assert read.manifest.origin == "café\\测试"
    assert read.manifest.licence == 'Apache-2.0 "or" so'
    assert set(read.manifest.files) == {"model.onnx", 'speakers/a "b".bin'}
    fractions = []
    read.verify(fractions.append)
    assert fractions[-1] == 1.0


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "words"),
    [(cut, "has 4999 bytes instead of 5000"), (flip, "SHA-256"), (Path.unlink, "No such file")],
)
def test_a_damaged_file_is_named(voice: Path, damage, words):
    damage(voice / "model.onnx")
    with pytest.raises(VoiceError, match=words) as error:
        package.read(voice).verify()
    assert str(voice / "model.onnx") in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "v"', "name = 3"),
        ('kind = "vits"', 'kind = "harp"'),
        (f"format = {FORMAT}", "format = 99"),
        ('default_speaker = "b"', 'default_speaker = "c"'),
        ('[files."model.onnx"]', '[files."../model.onnx"]'),
        ('[files."model.onnx"]', '[files."/etc/passwd"]'),
        ("sample_rate = 24000", ""),
        ("sample_rate = 24000", "sample_rate = = 3"),
        ("sample_rate = 24000", "sample_rate = 24000\n\udcff"),
    ],
)
def test_an_unsound_manifest_is_refused(voice: Path, old: str, new: str):
    path = voice / "voice.toml"
    text = path.read_text("utf-8")
    assert old in text
    path.write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))
    with pytest.raises(VoiceError) as error:
        package.read(voice)
    assert "voice.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_no_voice_at_all(tmp_path: Path):
    with pytest.raises(VoiceError, match="no voice here"):
        package.read(tmp_path)
    with pytest.raises(VoiceError, match="no voice here"):
        package.read(tmp_path / "nowhere")


def test_a_file_that_is_not_listed_has_no_path(voice: Path):
    with pytest.raises(VoiceError, match="lists no other"):
        package.read(voice).path("other")


def test_a_package_can_be_moved(voice: Path, tmp_path: Path):
    shutil.move(voice, tmp_path / "elsewhere")
    package.read(tmp_path / "elsewhere").verify()
