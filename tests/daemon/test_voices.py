"""The choice of a voice, among packages on disk."""

import os
import shutil
from pathlib import Path

import pytest

from utterd.daemon.config import Engine
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.voices import Voices
from utterd.engine.voices.package import FORMAT, Manifest, describe_files, write


def install(data: Path, name: str, *speakers: str) -> None:
    folder = data / "voices" / name
    folder.mkdir(parents=True)
    (folder / "style.bin").write_bytes(b"x")
    manifest = Manifest(
        format=FORMAT,
        name=name,
        kind="kokoro",
        languages=("zh", "en"),
        sample_rate=24_000,
        licence="Apache-2.0",
        origin="a test",
        phonemes="kokoro",
        timings="exact",
        speakers=speakers or ("main",),
        default_speaker=(speakers or ("main",))[0],
        files=describe_files(folder),
    )
    write(folder, manifest)
    touch(data)


def touch(data: Path) -> None:
    """Let the folder's time move on, whatever the clock of the file system is."""
    found = (data / "voices").stat()
    os.utime(data / "voices", ns=(found.st_atime_ns, found.st_mtime_ns + 10_000_000))


def refusal(voices: Voices, wanted: str) -> str:
    with pytest.raises(ProtocolError) as caught:
        voices.resolve(wanted)
    assert (caught.value.code, caught.value.field) == ("unknown_voice", "voice")
    return caught.value.message


def test_without_a_voice_the_error_says_what_to_do(tmp_path: Path) -> None:
    voices = Voices(tmp_path, Engine())
    assert voices.installed() == {}
    assert voices.default() == ""
    assert voices.describe() == []
    assert "utterd voices add" in refusal(voices, "")


def test_the_default_voice(tmp_path: Path) -> None:
    install(tmp_path, "amy")
    assert Voices(tmp_path, Engine()).default() == "amy"
    install(tmp_path, "kokoro")
    assert Voices(tmp_path, Engine()).default() == "kokoro"
    assert Voices(tmp_path, Engine(voice="amy/main")).default() == "amy/main"


def test_a_voice_is_chosen_by_name_by_quality_or_by_default(tmp_path: Path) -> None:
    install(tmp_path, "kokoro", "zf_001", "zm_010")
    install(tmp_path, "small")
    voices = Voices(tmp_path, Engine(fast="small", high="kokoro/zm_010"))
    assert voices.choose(Speak(text="x")) == ("kokoro", "")
    assert voices.choose(Speak(text="x", quality="fast")) == ("small", "")
    assert voices.choose(Speak(text="x", quality="balanced")) == ("kokoro", "")
    assert voices.choose(Speak(text="x", quality="high")) == ("kokoro", "zm_010")
    assert voices.choose(Speak(text="x", quality="high", voice="small")) == ("small", "")
    assert voices.choose(Speak(text="x", voice="kokoro/zf_001")) == ("kokoro", "zf_001")


def test_an_unknown_voice_or_speaker_names_those_there_are(tmp_path: Path) -> None:
    install(tmp_path, "kokoro", "zf_001", "zm_010")
    voices = Voices(tmp_path, Engine())
    assert "kokoro" in refusal(voices, "alto")
    assert "zf_001, zm_010" in refusal(voices, "kokoro/zf_999")
    for wanted in ("../kokoro", "/etc", "kokoro\n", "KOKORO"):
        refusal(voices, wanted)


def test_what_comes_and_goes_is_seen(tmp_path: Path) -> None:
    voices = Voices(tmp_path, Engine())
    assert voices.installed() == {}
    install(tmp_path, "amy")
    assert list(voices.installed()) == ["amy"]
    assert voices.installed() is voices.installed(), "read again only when the folder changed"
    install(tmp_path, "bob")
    assert list(voices.installed()) == ["amy", "bob"]
    shutil.rmtree(tmp_path / "voices" / "amy")
    touch(tmp_path)
    assert list(voices.installed()) == ["bob"]


def test_a_package_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    install(tmp_path, "amy")
    (tmp_path / "voices" / "torn").mkdir()
    (tmp_path / "voices" / "torn" / "voice.toml").write_text("format = ", encoding="utf-8")
    (tmp_path / "voices" / ".adding").mkdir()
    assert list(Voices(tmp_path, Engine()).installed()) == ["amy"]


def test_the_list_for_clients(tmp_path: Path) -> None:
    install(tmp_path, "amy")
    install(tmp_path, "kokoro", "zf_001", "zm_010")
    described = Voices(tmp_path, Engine(voice="amy/main")).describe()
    assert [(one["name"], one["default"]) for one in described] == [
        ("amy", True),
        ("kokoro", False),
    ]
    assert described[1]["speakers"] == ["zf_001", "zm_010"]
    assert described[1]["sample_rate"] == 24_000


def test_a_quality_whose_voice_is_missing_is_refused_and_names_those_there_are(
    tmp_path: Path,
) -> None:
    install(tmp_path, "small")
    voices = Voices(tmp_path, Engine(voice="small", fast="gone", high="small/nobody"))
    assert voices.choose(Speak(text="x", quality="balanced")) == ("small", "")
    for quality in ("fast", "high"):
        with pytest.raises(ProtocolError) as caught:
            voices.choose(Speak(text="x", quality=quality))
        assert caught.value.code == "unknown_voice"
        assert "small" in caught.value.message
