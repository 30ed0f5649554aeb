"""The choice of a voice, among packages on disk."""

import os
import shutil
from pathlib import Path

import pytest

from utterd.daemon.config import Engine
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.voices import Voices
from utterd.engine.voices import install as installing
from utterd.engine.voices import package
from utterd.engine.voices.package import BUILT_IN, FORMAT, Manifest, describe_files, write


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


def test_with_nothing_added_the_built_in_voice_speaks(tmp_path: Path) -> None:
    voices = Voices(tmp_path / "nowhere", Engine())
    assert list(voices.installed()) == ["small"]
    assert voices.installed() is voices.installed(), "read once"
    assert voices.choose(Speak(text="x")) == ("small", "")
    assert voices.choose(Speak(text="x", quality="high")) == ("small", "")
    assert [(one["name"], one["default"]) for one in voices.describe()] == [("small", True)]
    assert voices.folder("small") == BUILT_IN
    assert voices.problems() == {}


def test_the_default_voice(tmp_path: Path) -> None:
    install(tmp_path, "amy")
    install(tmp_path, "kokoro")
    assert Voices(tmp_path, Engine()).default() == "small"
    configured = Voices(tmp_path, Engine(voice="amy/main"))
    assert configured.default() == "amy/main"
    configured.prefer("kokoro")
    assert configured.default() == "kokoro"


def test_a_voice_that_was_added_stands_before_the_built_in_one_of_its_name(tmp_path: Path) -> None:
    voices = Voices(tmp_path, Engine())
    built_in = voices.installed()["small"]
    install(tmp_path, "small", "mine")
    assert voices.folder("small") == tmp_path / "voices" / "small"
    assert voices.installed()["small"].manifest.speakers == ("mine",)
    assert voices.default() == "small"
    shutil.rmtree(tmp_path / "voices" / "small")
    touch(tmp_path)
    assert voices.installed()["small"] == built_in
    shutil.rmtree(tmp_path / "voices")
    assert voices.installed()["small"] == built_in


@pytest.mark.parametrize("content", [None, "format = "])
def test_a_damaged_installation_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    built_in = tmp_path / "package" / "small"
    if content is not None:
        built_in.mkdir(parents=True)
        (built_in / "voice.toml").write_text(content)
    for module in (package, installing):
        monkeypatch.setattr(module, "BUILT_IN", built_in)
    voices = Voices(tmp_path, Engine())
    assert voices.default() == "small"
    message = refusal(voices, "small")
    assert "the voice small can't be used" in message
    assert message.endswith("install utterd again")
    assert refusal(voices, "amy").endswith("(installed: none)")
    assert list(voices.problems()) == ["small"]
    install(tmp_path, "small")
    assert voices.choose(Speak(text="x")) == ("small", "")


def test_where_a_voice_lies_that_is_gone(tmp_path: Path) -> None:
    """Its worker, started again, finds nothing there and says so."""
    install(tmp_path, "amy")
    voices = Voices(tmp_path, Engine())
    assert voices.folder("amy") == tmp_path / "voices" / "amy"
    shutil.rmtree(tmp_path / "voices" / "amy")
    touch(tmp_path)
    assert voices.folder("amy") == tmp_path / "voices" / "amy"


def test_a_voice_is_chosen_by_name_by_quality_or_by_default(tmp_path: Path) -> None:
    install(tmp_path, "kokoro", "zf_001", "zm_010")
    install(tmp_path, "small")
    voices = Voices(tmp_path, Engine(voice="kokoro", fast="small", high="kokoro/zm_010"))
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
    assert list(voices.installed()) == ["small"]
    install(tmp_path, "amy")
    assert list(voices.installed()) == ["amy", "small"]
    assert voices.installed() is voices.installed(), "read again only when the folder changed"
    install(tmp_path, "bob")
    assert list(voices.installed()) == ["amy", "bob", "small"]
    shutil.rmtree(tmp_path / "voices" / "amy")
    touch(tmp_path)
    assert list(voices.installed()) == ["bob", "small"]


def test_a_package_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    install(tmp_path, "amy")
    (tmp_path / "voices" / "torn").mkdir()
    (tmp_path / "voices" / "torn" / "voice.toml").write_text("format = ", encoding="utf-8")
    (tmp_path / "voices" / ".adding").mkdir()
    voices = Voices(tmp_path, Engine())
    assert list(voices.installed()) == ["amy", "small"]
    assert "no voice manifest" in voices.problems()["torn"]
    assert "the voice torn can't be used" in refusal(voices, "torn")


def test_the_list_for_clients(tmp_path: Path) -> None:
    install(tmp_path, "amy")
    install(tmp_path, "kokoro", "zf_001", "zm_010")
    described = Voices(tmp_path, Engine(voice="amy/main")).describe()
    assert [(one["name"], one["default"]) for one in described] == [
        ("amy", True),
        ("kokoro", False),
        ("small", False),
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
