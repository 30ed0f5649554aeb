"""Which voice is `fast`, `balanced` and `high`, and for how long that holds."""

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.engine.training.conftest import networks, package
from utterd.daemon import manage_voices, qualities
from utterd.daemon.cli import main
from utterd.daemon.config import Config, Engine, Paths
from utterd.daemon.measure_voices import MeasureError, measure, table
from utterd.daemon.protocol import Speak
from utterd.daemon.qualities import Benchmark, Measured, choose, machine
from utterd.daemon.voices import Voices

__all__ = ["networks", "package"]


def voice(name: str, kind: str, first_ms: float, factor: float, *languages: str) -> Measured:
    spoken = list(languages) or ["zh", "en"]
    return Measured(name, "0", kind, spoken, "cpu", 1.0, first_ms, factor, 100)


SMALL = voice("small", "small", 6, 0.01)
LARGE = voice("large", "small", 15, 0.05)
KOKORO = voice("kokoro", "kokoro", 600, 0.6)
JOE = voice("joe", "vits", 3, 0.01, "en")


@pytest.mark.parametrize(
    ("measured", "fast", "balanced", "high"),
    [
        ([], None, None, None),
        ([JOE], "joe", "joe", "joe"),
        ([KOKORO], "kokoro", "kokoro", "kokoro"),
        ([SMALL, KOKORO, JOE], "small", "small", "kokoro"),
        ([KOKORO, LARGE, SMALL], "small", "large", "kokoro"),
        # A machine on which Kokoro does not keep up, and one on which it is prompt.
        ([SMALL, voice("kokoro", "kokoro", 900, 1.2)], "small", "small", "small"),
        ([SMALL, voice("kokoro", "kokoro", 90, 0.1)], "small", "kokoro", "kokoro"),
        # Nothing keeps up: the fastest is still asked.
        ([voice("a", "kokoro", 900, 3.0), voice("b", "vits", 800, 2.0)], "b", "b", "b"),
        # Chinese before English.
        ([voice("zh", "vits", 50, 0.2, "zh"), JOE], "zh", "zh", "zh"),
    ],
)
def test_the_choice(measured, fast, balanced, high) -> None:
    chosen = choose(measured)
    assert [chosen.get(q) for q in qualities.QUALITIES] == [fast, balanced, high]


@pytest.fixture
def data(tmp_path: Path, package) -> Path:
    """Two voices of the same weights."""
    for name in ("one", "two"):
        shutil.copytree(package.folder, tmp_path / "voices" / name)
        manifest = tmp_path / "voices" / name / "voice.toml"
        manifest.write_text(manifest.read_text().replace('name = "tiny"', f'name = "{name}"'))
    return tmp_path


def kept(data: Path, **changes: object) -> Benchmark:
    """A file that was measured here."""
    installed = Voices(data, Engine()).installed()
    voices = [
        Measured(name, qualities.identity(found), "small", ["zh"], "cpu", 1.0, 5.0, 0.1, 100)
        for name, found in installed.items()
    ]
    chosen = {"fast": "one", "balanced": "two", "high": "two"}
    values = {
        "format": 1, "machine": machine(), "unix_s": 0.0, "load": 0.0,
        "voices": voices, "chosen": chosen,
    }  # fmt: skip
    found = Benchmark(**(values | changes))
    qualities.write(data, found)
    return found


def chosen(data: Path, **config: str) -> list[str]:
    """Voices without a quality and of each; the built-in one where nothing else is said."""
    voices = Voices(data, Engine(**config))
    return [voices.choose(Speak(text="a", quality=q))[0] for q in ("", *qualities.QUALITIES)]


def test_what_was_measured_decides_and_configuration_overrides(data) -> None:
    assert chosen(data) == ["small"] * 4
    kept(data)
    assert chosen(data) == ["two", "one", "two", "two"]
    assert chosen(data, high="one", voice="one") == ["one", "one", "two", "one"]
    described = {v["name"]: v for v in Voices(data, Engine()).describe()}
    assert described["one"]["qualities"] == ["fast"]
    assert described["two"]["qualities"] == ["balanced", "high"]
    assert described["two"]["default"]


def test_a_running_daemon_sees_a_new_measurement(data) -> None:
    voices = Voices(data, Engine())
    assert voices.default() == "small"
    assert "not measured" in voices.stale
    kept(data)
    assert voices.default() == "two"
    assert voices.stale == ""


def test_a_voice_that_changed_is_measured_again_and_no_longer_chosen(data) -> None:
    kept(data)
    manifest = data / "voices" / "two" / "voice.toml"
    manifest.write_text(manifest.read_text().replace("Apache-2.0", "MIT"))
    voices = Voices(data, Engine())
    assert [voices.of_quality(q) for q in qualities.QUALITIES] == ["one", "small", "small"]
    assert "not those that were measured" in voices.stale


def test_another_machine_has_to_measure_for_itself(data) -> None:
    kept(data, machine=msgspec.structs.replace(machine(), cores=999))
    voices = Voices(data, Engine())
    assert voices.measured() == {}
    assert "another machine" in voices.stale


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 1}', b"\xff"])
def test_a_damaged_file_is_as_none(data, content) -> None:
    (data / qualities.FILE).write_bytes(content)
    assert chosen(data) == ["small"] * 4


def test_real_workers_are_measured(data, capfd) -> None:
    place = ["--data-dir", str(data)]
    assert main(["voices", "benchmark", *place, "--json"]) == 0
    found = msgspec.json.decode(capfd.readouterr().out, type=Benchmark)
    assert [one.name for one in found.voices] == ["one", "small", "two"]
    for one in found.voices:
        assert one.first_ms > 0
        assert one.real_time_factor > 0
        assert one.rss_bytes > 10_000_000
    assert qualities.read(data) == found
    assert found.chosen["high"] in ("one", "small", "two")
    assert len(table(found)) == 4
    assert main(["voices", "list", *place, "--json"]) == 0
    shown = {v["name"]: v["qualities"] for v in json.loads(capfd.readouterr().out)}
    assert "high" in shown[found.chosen["high"]]


def test_a_built_in_voice_that_changed_is_measured_again(data) -> None:
    """By another one of its name, as by another release of utterd."""
    kept(data, chosen={"balanced": "small"})
    voices = Voices(data, Engine())
    assert (voices.measured(), voices.stale) == ({"balanced": "small"}, "")
    shutil.copytree(data / "voices" / "one", data / "voices" / "small")
    assert voices.measured() == {}
    assert "not those that were measured" in voices.stale


def test_a_voice_that_cannot_speak_is_told_and_left_out(data) -> None:
    (data / "voices" / "two" / "decode.onnx").write_bytes(b"no graph")
    (data / "voices" / "torn").mkdir()
    config = Config(paths=Paths(data=str(data)))
    voices = Voices(data, config.engine)
    steps: list[float] = []
    told: list[str] = []
    found = measure(config, voices, lambda what, fraction: steps.append(fraction), told.append)
    assert steps == sorted(steps)
    assert [one.name for one in found.voices] == ["one", "small"]
    assert "the voice torn can't be used" in told[0]
    assert "the voice two can't speak" in told[1]
    assert len(told) == 2
    assert qualities.stale(found, voices.installed()) == ""


def test_where_no_voice_can_speak_that_is_told(data) -> None:
    shutil.copytree(data / "voices" / "one", data / "voices" / "small")  # before the built-in one
    for name in ("one", "small", "two"):
        (data / "voices" / name / "decode.onnx").write_bytes(b"no graph")
    config = Config(paths=Paths(data=str(data)))
    told: list[str] = []
    with pytest.raises(MeasureError, match="no voice can speak"):
        measure(config, Voices(data, config.engine), lambda what, fraction: None, told.append)
    assert len(told) == 3


def test_every_action_of_the_command_line_is_there(capfd) -> None:
    with pytest.raises(SystemExit):
        main(["voices", "no-such-action"])
    offered = capfd.readouterr().err.partition("choose from")[2].partition(")")[0]
    assert set(re.findall("[a-z]+", offered)) == set(manage_voices.ACTIONS)
