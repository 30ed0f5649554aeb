"""Every command of `utterd` against a real daemon: help, arguments, configuration, errors."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from tests.daemon_process import DaemonProcess
from tests.e2e.command import PATIENCE_S, at, complaint, done, finish, held, run, spawn
from utterd.daemon import cli, rooms
from utterd.daemon.config import Config


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Every command's parser by its words."""
    found: dict[str, argparse.ArgumentParser] = {}

    def walk(words: str, parser: argparse.ArgumentParser) -> None:
        found[words] = parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, below in action.choices.items():
                    walk(f"{words} {name}".strip(), below)

    walk("", cli._parser())
    return {words: parser for words, parser in found.items() if words not in rooms.ROOMS}


@pytest.mark.parametrize("words", parsers())
def test_help_names_every_argument_and_says_what_it_is_for(words):
    text = done(run(*words.split(), "--help"))
    for action in parsers()[words]._actions:
        for option in action.option_strings:
            assert option in text
        assert action.help or isinstance(action, argparse._SubParsersAction), action
        if action.help:
            assert " ".join(action.help.split())[:40] in " ".join(text.split())


def test_help_names_every_command_every_exit_code_and_shows_examples():
    text = done(run("--help"))
    for words in (*parsers(), *rooms.ROOMS):
        assert not words or f" {words.split()[0]} " in text
    for code in ("0 done", "1 could not", "2 wrong", "3 no daemon"):
        assert code in text
    examples = text.partition("examples:")[2]
    assert "utterd say --start" in examples
    assert "| utterd say" in examples


def test_version():
    assert done(run("--version")).startswith("utterd ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "COMMAND"),
        (("sing",), "sing"),
        (("say", "--loud", "x"), "--loud; see utterd say --help"),
        (("voices", "add", "--loud", "x"), "--loud; see utterd voices add --help"),
        (("say", "--rate", "fast", "x"), "--rate"),
        (("say", "--priority", "urgent", "x"), "--priority"),
        (("synth", "x"), "--output"),
        (("voices", "fly"), "fly"),
        (("voices", "add"), "source"),
        (("bench", "--rounds", "0"), "--rounds"),
    ],
)
def test_a_wrong_argument_is_named_and_help_is_pointed_to(arguments, named):
    line = complaint(run(*arguments), 2)
    assert named in line
    assert "--help" in line


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('[audio]\nrate = "high"\n', "audio.rate"),
        ("[audio]\ngain = 99\n", "audio.gain"),
        ("[sound]\n", "sound"),
        ('[metrics]\nlisten = "here"\n', "metrics.listen"),
        ("[audio\n", "TOML"),
    ],
)
@pytest.mark.parametrize("command", [("say", "x"), ("serve",)])
def test_a_bad_configuration_names_file_and_field(tmp_path, command, content, field):
    file = tmp_path / "bad.toml"
    file.write_text(content)
    line = complaint(run(*command, "--config", str(file)), 2)
    assert str(file) in line
    assert field in line


def test_a_bad_variable_and_a_missing_file_are_named(tmp_path):
    environment = os.environ | {"UTTERD_LIMITS_WAITING": "0"}
    assert "UTTERD_LIMITS_WAITING" in complaint(run("status", env=environment), 2)
    missing = str(tmp_path / "none.toml")
    assert missing in complaint(run("status", "--config", missing), 2)


def test_config_prints_what_is_in_force_as_a_file_that_gives_the_same(tmp_path):
    first = tmp_path / "first.toml"
    first.write_text('[audio]\ngain = 0.5\n[tune]\nprofile = "speech"\n')
    environment = os.environ | {"UTTERD_AUDIO_RATE": "44100"}
    text = done(run("config", "--config", str(first), "--run-dir", "/x", env=environment))
    found = msgspec.convert(tomllib.loads(text), Config)
    assert (found.audio.gain, found.audio.rate, found.paths.run) == (0.5, 44100, "/x")
    assert found.tune == {"profile": "speech"}
    assert found.log == Config().log
    again = tmp_path / "again.toml"
    again.write_text(text)
    assert done(run("config", "--config", str(again))) == text


def test_without_a_daemon_each_command_says_how_to_get_one(tmp_path):
    place = ("--run-dir", str(tmp_path))
    commands = [
        ("say", *place, "x"),
        ("synth", *place, "-o", str(tmp_path / "x.wav"), "x"),
        ("status", *place),
        ("stop", *place),
        ("top", "--once", *place),
        ("bench", *place),
    ]
    for process in [spawn("--log-level", "error", *command) for command in commands]:
        assert "utterd serve" in complaint(finish(process), 3)
    told = run("status", *place)
    assert told.returncode == 3
    waits, complains = told.stderr.splitlines()
    assert waits.startswith("warning client: no daemon is there yet")
    assert complains.startswith("utterd: no daemon answers")
    assert list(tmp_path.iterdir()) == []


def test_status_tells_what_can_be_heard(quiet_daemon):
    text = done(run("status", *at(quiet_daemon)))
    assert text.startswith("can be heard\n")
    assert "voice    joe-us: ready" in text
    both = json.loads(done(run("status", "--json", *at(quiet_daemon))))
    assert both["health"]["audible"] is True
    assert both["queue"]["waiting"] == []


def test_what_is_degraded_is_shown(tmp_path, voices_dir):
    daemon = DaemonProcess(
        *(tmp_path / "run", voices_dir, "--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null", "UTTERD_LIMITS_PLAYER_RSS_MB": "1"},
    )
    try:
        with daemon.client() as client:
            daemon.wait_until(
                lambda: bool(client.call("health")["degraded"]), PATIENCE_S, "the limit to be told"
            )
        status = done(run("status", *at(daemon)))
        assert status.startswith("can be heard\n  degraded: memory of player: it needs")
        assert "\ndegraded memory of player: it needs" in done(run("top", "--once", *at(daemon)))
    finally:
        daemon.stop()


def test_stop_cancels_everything(quiet_daemon):
    with held(quiet_daemon) as client:
        for _ in range(2):
            client.call("speak", text="Never heard.")
        assert done(run("stop", *at(quiet_daemon))).startswith("2 cancelled, silent after ")
        assert json.loads(done(run("stop", "--json", *at(quiet_daemon))))["cancelled"] == 0
        assert client.call("status")["waiting"] == []


def test_bench_measures_sentences_of_a_file(quiet_daemon, tmp_path):
    file = tmp_path / "sentences"
    file.write_text("Hi.\n\nYes.\n")
    command = ("bench", *at(quiet_daemon), "--rounds", "1", "--file", str(file))
    result = run(*command, "--json")
    found = json.loads(done(result))
    assert "2 of 2" in result.stderr
    assert (found["sentences"], found["rounds"]) == (2, 1)
    assert found["voices"]["default"]["received_to_first_sound"]["n"] == 2
    table = done(run(*command, "--voice", "joe-us"))
    assert "2 segments came from the cache" in table
    assert "joe-us: 2 sentences" in table
    assert "received -> first sound" in table


def test_bench_without_sentences_or_voice_says_so(quiet_daemon, tmp_path):
    missing = str(tmp_path / "none")
    assert missing in complaint(run("bench", *at(quiet_daemon), "--file", missing), 1)
    assert os.devnull in complaint(run("bench", *at(quiet_daemon), "--file", os.devnull), 2)
    assert "nobody" in complaint(run("bench", *at(quiet_daemon), "--voice", "nobody"), 1)


def test_a_reader_that_leaves_early_is_no_error_to_tell(quiet_daemon):
    process = spawn("voices", "--json", *at(quiet_daemon))
    process.stdout.close()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert err == b""
    assert process.returncode == 1


def test_a_daemon_whose_voice_cannot_be_read_can_be_asked_and_says_what_to_do(tmp_path):
    torn = tmp_path / "data" / "voices" / "small"
    torn.mkdir(parents=True)
    (torn / "voice.toml").write_text("name =")
    daemon = DaemonProcess(
        *(tmp_path / "run", tmp_path / "data"),
        environment={"UTTERD_AUDIO_SINK": "null"},
        wait=False,
    )
    try:
        daemon.wait_until((daemon.run_dir / "events.sock").exists, PATIENCE_S, "its sockets")
        told = complaint(run("say", *at(daemon), "x"), 1)
        assert "the voice small can't be used" in told
        assert "add the voice again" in told
        for command in (("status",), ("top", "--once")):
            result = run(*command, *at(daemon))
            assert result.returncode == 1
            assert "can NOT be heard" in result.stdout
        health = json.loads(run("status", "--json", *at(daemon)).stdout)["health"]
        assert "the voice small can't be used" in health["problems"][-1]
    finally:
        daemon.stop()


def test_a_second_daemon_for_the_same_folder_is_refused(quiet_daemon):
    assert str(quiet_daemon.process.pid) in complaint(run("serve", *at(quiet_daemon)), 1)
    with quiet_daemon.client() as client:
        assert client.call("ping")["ok"]


@pytest.mark.parametrize("name", rooms.ROOMS)
def test_commands_of_other_rooms_have_help(name):
    assert name in done(run(name, "--help"))
    result = run(name, "--no-such-option")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_explain_reads_a_text():
    assert "ni3 hao3" in done(run("explain", "你好"))
    lines = done(run("explain", "--json", "-", stdin="你好\n二\n".encode())).splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["你好", "二"]


def test_tune_plans():
    assert "changes" in json.loads(done(run("tune", "plan", "--json")))


def test_doctor_finds_the_daemon(quiet_daemon, tmp_path):
    environment = os.environ | {
        "UTTERD_PATHS_RUN": str(quiet_daemon.config.run_dir),
        "UTTERD_PATHS_DATA": str(quiet_daemon.config.data_dir),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    result = run("doctor", "--json", "--seconds", "0.1", env=environment)
    assert result.returncode in (0, 1, 2), result.stderr
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert "heard through null" in findings["daemon"]["found"]
    assert "devices" in findings


def test_the_installed_command_is_this_one():
    found = shutil.which("utterd", path=str(Path(sys.executable).parent))
    assert found is not None
    output = subprocess.run([found, "--version"], capture_output=True, check=True).stdout
    assert output.decode() == done(run("--version"))


@pytest.mark.parametrize("command", [("config",), ("voices", "list", "--json"), ("voices",)])
def test_options_of_all_commands_may_stand_before_the_command(tmp_path, command):
    file = tmp_path / "utterd.toml"
    file.write_text(f'[paths]\ndata = "{tmp_path}"\n')
    before = done(run("--config", str(file), *command))
    assert before == done(run(*command, "--config", str(file)))
    assert command[0] != "config" or f'data = "{tmp_path}"' in before
    other = tmp_path / "other.toml"
    other.write_text("")
    assert done(run("--config", str(file), *command, "--config", str(other))) == done(
        run(*command, "--config", str(other))
    )


@pytest.mark.parametrize("name", rooms.ROOMS)
def test_commands_that_read_their_own_options_say_where_these_stand(tmp_path, name):
    file = tmp_path / "utterd.toml"
    file.write_text("")
    line = complaint(run("--config", str(file), name, "--json"), 2)
    assert f"the options of {name} stand behind it" in line
