"""The configuration: what wins over what, and errors that name their place."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from utterd.daemon import config
from utterd.daemon.config import Config, ConfigError, load
from utterd.engine import channel
from utterd.engine import messages as engine

VALUES: dict[str, tuple[str, Any]] = {
    "paths.run": ("/x/r", "/x/r"),
    "paths.data": ("/x/d", "/x/d"),
    "paths.lexicon": ("/x/l", "/x/l"),
    "paths.sounds": ("/x/s", "/x/s"),
    "socket.group": ("audio", "audio"),
    "socket.tcp": ("tcp://127.0.0.1:5577", "tcp://127.0.0.1:5577"),
    "socket.curve_secret_key_file": ("/k", "/k"),
    "socket.curve_clients_dir": ("/c", "/c"),
    "audio.sink": ("wav", "wav"),
    "audio.device": ("12", "12"),
    "audio.wav": ("x.wav", "x.wav"),
    "audio.rate": ("44100", 44100),
    "audio.period_ms": ("8", 8.0),
    "audio.ramp_ms": ("2.5", 2.5),
    "audio.gain": ("0.5", 0.5),
    "audio.speed": ("4", 4.0),
    "audio.release_after_s": ("2", 2.0),
    "audio.wake_ms": ("300", 300.0),
    "audio.keep_alive": ("1", True),
    "audio.role": ("Navigation", "Navigation"),
    "engine.voice": ("kokoro/zf_001", "kokoro/zf_001"),
    "engine.threads": ("2", 2),
    "engine.fast": ("small", "small"),
    "engine.balanced": ("b", "b"),
    "engine.emoji": ("name", "name"),
    "engine.high": ("h", "h"),
    "engine.ready_timeout_s": ("60", 60.0),
    "engine.stall_timeout_s": ("7.5", 7.5),
    "limits.waiting": ("5", 5),
    "limits.characters": ("300", 300),
    "limits.message_bytes": ("4096", 4096),
    "limits.stream_flush_ms": ("100", 100),
    "limits.worker_rss_mb": ("900", 900),
    "limits.player_rss_mb": ("90", 90),
    "limits.daemon_rss_mb": ("120", 120),
    "limits.stream_end_s": ("5", 5.0),
    "cache.memory_mb": ("4", 4),
    "cache.disk_mb": ("64", 64),
    "cache.ttl_hours": ("12", 12.0),
    "ducking.begin": ("lower", "lower"),
    "ducking.end": ("raise", "raise"),
    "metrics.listen": ("127.0.0.1:9464", "127.0.0.1:9464"),
    "log.level": ("debug", "debug"),
    "log.format": ("json", "json"),
}


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No file of this machine is read."""
    monkeypatch.setattr(config, "SYSTEM_FILE", tmp_path / "system.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "utterd").mkdir(parents=True)
    return tmp_path


def value_of(found: Config, name: str) -> Any:
    section, key = name.split(".")
    return getattr(getattr(found, section), key)


def refused(*arguments: Any, **named: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(*arguments, **named)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_every_key_has_a_value_here() -> None:
    keys = {
        f"{section.name}.{key.name}"
        for section in msgspec.structs.fields(Config)
        if section.name != "tune"  # a table that another room checks
        for key in msgspec.structs.fields(section.type)
    }
    assert keys == set(VALUES)


def test_nothing_set_gives_the_defaults() -> None:
    assert load(environment={}) == Config()


@pytest.mark.parametrize("name", VALUES)
def test_the_environment_reaches_every_key(name: str) -> None:
    text, expected = VALUES[name]
    assert expected != value_of(Config(), name)
    found = load(environment={f"UTTERD_{name.replace('.', '_').upper()}": text})
    assert value_of(found, name) == expected
    assert type(value_of(found, name)) is type(expected)


@pytest.mark.parametrize("name", VALUES)
def test_a_file_and_a_flag_reach_every_key(name: str, tmp_path: Path) -> None:
    _, expected = VALUES[name]
    section, key = name.split(".")
    file = tmp_path / "one.toml"
    file.write_text(f"[{section}]\n{key} = {json.dumps(expected)}\n", encoding="utf-8")
    assert value_of(load(file, {}), name) == expected
    assert value_of(load(environment={}, flags={section: {key: expected}}), name) == expected


def test_what_comes_later_wins(tmp_path: Path) -> None:
    system, user = tmp_path / "system.toml", tmp_path / "home" / "utterd" / "utterd.toml"
    environment: dict[str, str] = {}
    flags: dict[str, dict[str, Any]] = {}
    seen = []
    steps = (
        lambda: None,
        lambda: system.write_text("[audio]\nrate = 1\nwav = 'kept'\n", encoding="utf-8"),
        lambda: user.write_text("[audio]\nrate = 2\n", encoding="utf-8"),
        lambda: environment.update(UTTERD_AUDIO_RATE="3"),
        lambda: flags.update(audio={"rate": 4}),
    )
    for step in steps:
        step()
        seen.append(load(environment=environment, flags=flags).audio.rate)
    assert seen == [0, 1, 2, 3, 4]
    assert load(environment=environment, flags=flags).audio.wav == "kept"


def test_the_table_of_another_room_comes_through(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text("[tune]\ngovernor = 'performance'\n", encoding="utf-8")
    assert load(tmp_path / "one.toml", {}).tune == {"governor": "performance"}


def test_a_file_that_is_named_is_read_alone(tmp_path: Path) -> None:
    (tmp_path / "system.toml").write_text("[audio]\nwav = 'system'\n", encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text("[audio]\nrate = 7\n", encoding="utf-8")
    for found in (load(own, {}), load(environment={"UTTERD_CONFIG": str(own)})):
        assert (found.audio.rate, found.audio.wav) == (7, "utterd.wav")
    assert load(environment={"UTTERD_CONFIG": ""}).audio.wav == "system"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[audio]\nrate = 'fast'\n", ("rate", "int")),
        ("[audio]\nrate = -1\n", ("rate",)),
        ("[audio]\nperiod_ms = nan\n", ("period_ms",)),
        ("[audio]\nsink = 'tape'\n", ("sink", "tape")),
        ("[audio]\nloud = true\n", ("loud",)),
        ("[video]\n", ("video",)),
        ("audio = 5\n", ("audio",)),
        ("[engine]\nready_timeout_s = inf\n", ("ready_timeout_s",)),
        ("[limits]\nstream_end_s = inf\n", ("stream_end_s",)),
        ("[limits]\nstream_end_s = 0\n", ("stream_end_s",)),
        ("[limits]\ncharacters = 48001\n", ("characters",)),
        ("[audio\n", ("TOML",)),
        ("x = '\udcff'", ("TOML",)),
    ],
)
def test_an_error_in_a_file_names_file_and_field(
    text: str, parts: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    message = refused(file, {})
    assert all(part in message for part in (str(file), *parts)), message


def test_a_file_that_is_not_there_is_an_error_where_it_was_named(tmp_path: Path) -> None:
    assert str(tmp_path / "none.toml") in refused(tmp_path / "none.toml", {})
    assert str(tmp_path) in refused(tmp_path, {})


def test_an_error_in_the_environment_names_the_variable() -> None:
    assert "UTTERD_AUDIO_RATE" in refused(environment={"UTTERD_AUDIO_RATE": "high"})
    assert "UTTERD_LOG_LEVEL" in refused(environment={"UTTERD_LOG_LEVEL": "all"})


def test_an_error_in_a_flag_names_the_field() -> None:
    message = refused(environment={}, flags={"audio": {"gain": 9}})
    assert "command line" in message
    assert "gain" in message


@pytest.mark.parametrize(
    ("table", "seconds"),
    [
        ({}, 30.0),
        ({"keep_alive": True}, 0.0),
        ({"role": "Notification"}, 1.0),
        ({"role": "Notification", "release_after_s": 5}, 5.0),
        ({"release_after_s": 0}, 0.0),
        ({"keep_alive": False, "wake_ms": 100}, 30.0),
        ({"keep_alive": True, "release_after_s": 0, "wake_ms": 100}, 0.0),
    ],
)
def test_when_the_device_is_let_go_follows_from_what_is_set(
    table: dict[str, Any], seconds: float
) -> None:
    assert load(environment={}, flags={"audio": table}).audio.release_after_s == seconds


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ({"keep_alive": True, "release_after_s": 5}, ("keep_alive", "release_after_s")),
        ({"wake_ms": 100, "release_after_s": 0}, ("wake_ms", "keep_alive", "release_after_s")),
        ({"role": "event", "release_after_s": 0}, ("role", "'event'", "release_after_s")),
        ({"role": "event", "keep_alive": True}, ("role", "'event'", "release_after_s")),
    ],
)
def test_settings_that_contradict_each_other_are_named(
    table: dict[str, Any], parts: tuple[str, ...], tmp_path: Path
) -> None:
    message = refused(environment={}, flags={"audio": table})
    assert all(part in message for part in parts), message
    variables = {f"UTTERD_AUDIO_{key}".upper(): str(value) for key, value in table.items()}
    assert refused(environment=variables) == message
    file = tmp_path / "own.toml"
    key, value = table.popitem()
    file.write_text(f"[audio]\n{key} = {json.dumps(value)}\n", encoding="utf-8")
    assert refused(file, {}, {"audio": table}) == message


@pytest.mark.parametrize("role", ["two words", "a=b", "}", "x" * 65, "-"])
def test_a_role_is_a_word(role: str) -> None:
    assert "role" in refused(environment={}, flags={"audio": {"role": role}})


def test_a_message_to_a_worker_holds_the_longest_text() -> None:
    longest = "\N{GRINNING FACE}" * 48_000
    say = engine.Say(1 << 40, "i" * 128, longest, speaker="s" * 256, language="l" * 35)
    assert len(msgspec.msgpack.encode(say)) <= channel.LARGEST_BYTES


def test_folders_of_root_the_service_and_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert Config().control == "ipc:///run/utterd/control.sock"
    assert Config().events == "ipc:///run/utterd/events.sock"
    assert Config().data_dir == Path("/var/lib/utterd")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b")
    assert Config().data_dir == Path("/var/lib/a")
    monkeypatch.delenv("STATE_DIRECTORY")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert Config().run_dir == tmp_path / "run" / "utterd"
    assert Config().data_dir == tmp_path / "share" / "utterd"


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("UTTERD_AUDIO_SNIK", "UTTERD_AUDIO_SINK"),
        ("UTTERD_AUDOI_SINK", "UTTERD_AUDIO_SINK"),
        ("UTTERD_LOG_LEVELL", "UTTERD_LOG_LEVEL"),
        ("UTTERD_SOCKETS_TCP", "UTTERD_SOCKET_TCP"),
        ("UTTERD_LOG_COLOUR_OF_THE_LINES", "utterd config"),
        ("UTTERD_TUNE_GOVERNOR", "utterd config"),
    ],
)
def test_a_misspelt_variable_is_told(variable: str, meant: str) -> None:
    message = refused(environment={variable: "x"})
    assert message.startswith(f"{variable}: nothing has this name")
    assert meant in message


def test_every_key_misspelt_by_two_letters_that_changed_places_is_told() -> None:
    for variable in environment_of_everything():
        for at in range(len("UTTERD_"), len(variable) - 1):
            swapped = variable[:at] + variable[at + 1] + variable[at] + variable[at + 2 :]
            if swapped != variable:
                assert variable in refused(environment={swapped: "x"}), swapped


def environment_of_everything() -> list[str]:
    return [
        f"UTTERD_{section.name}_{key.name}".upper()
        for section in msgspec.structs.fields(Config)
        if msgspec.inspect.is_struct_type(section.type)
        for key in msgspec.structs.fields(section.type)
    ]


def test_variables_of_other_programs_are_left_alone() -> None:
    names = ("DATA", "CONFIG", "ROOM", "CLIENT", "UTTERANCE", "TEST_DATA", "HOME", "VERSION")
    assert load(environment={f"UTTERD_{name}": "" for name in names}) == Config()
