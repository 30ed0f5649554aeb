"""`utterd say --start`: a daemon for one call, of which nothing is left."""

import json
import os
import shutil
import signal
import subprocess
import wave
from pathlib import Path

import numpy as np
import psutil

from tests.daemon_process import listening
from tests.e2e.command import LONG, PATIENCE_S, UTTERD, at, done, finish, run, spawn
from utterd.engine.voices.package import BUILT_IN


def processes_of(folder: Path) -> list[psutil.Process]:
    """Daemons of a run folder."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(folder) in (process.info["cmdline"] or []) and process.pid != os.getpid()
    ]


def without_sound(tmp_path: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """What stands before a command, and its environment, so that it finds no sound device."""
    environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path), "JACK_NO_START_SERVER": "1"}
    if not Path("/dev/snd").exists():
        return (), environment
    hide = 'mount -t tmpfs none /dev/snd && exec "$@"'
    return ("unshare", "--map-root-user", "--mount", "sh", "-c", hide, "sh"), environment


def test_start_speaks_into_a_file_where_there_is_no_device_and_leaves_only_that(
    tmp_path, voices_dir
):
    run_dir = tmp_path / "not" / "yet"
    before, environment = without_sound(tmp_path)
    place = ("--run-dir", str(run_dir), "--data-dir", str(voices_dir))
    process = subprocess.Popen(
        [*before, *UTTERD, "say", "--start", *place, "--voice", "joe-us", "Hello there."],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    result = finish(process)
    assert done(result) == ""
    assert f"speaking into {tmp_path / 'utterd.wav'}" in result.stderr
    with wave.open(str(tmp_path / "utterd.wav")) as wav:
        data = np.frombuffer(wav.readframes(wav.getnframes()), np.int16)
    assert np.abs(data.astype(int)).max() > 1000
    assert processes_of(run_dir) == []
    assert [path.name for path in tmp_path.iterdir()] == ["utterd.wav"]


def test_with_nothing_added_the_built_in_voice_speaks(tmp_path):
    """From an empty data folder: nothing is installed, fetched or named."""
    output = tmp_path / "out.wav"
    place = ("--run-dir", str(tmp_path / "run"), "--data-dir", str(tmp_path / "data"))
    said = run("say", "--start", *place, "--wav", str(output), "--json", "你好，hello。")
    events = [json.loads(line) for line in done(said).splitlines()]
    assert [e["voice"] for e in events if e["event"] == "started"] == ["small"]
    assert events[-1]["event"] == "ended"
    with wave.open(str(output)) as wav:
        data = np.frombuffer(wav.readframes(wav.getnframes()), np.int16)
    assert np.abs(data.astype(int)).max() > 1000


def test_start_that_is_ended_takes_its_daemon_along(tmp_path, voices_dir):
    run_dir, output = tmp_path / "run", tmp_path / "out.wav"
    place = ("--run-dir", str(run_dir), "--data-dir", str(voices_dir), "--wav", str(output))
    process = spawn("say", "--start", *place, "--voice", "joe-us", "--json", LONG)
    for line in process.stdout:
        if json.loads(line)["event"] == "started":
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 4
    process.terminate()
    assert finish(process).returncode == 128 + signal.SIGTERM
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive
    assert not run_dir.exists()


def test_start_that_cannot_speak_says_why_and_leaves_nothing(tmp_path):
    run_dir = tmp_path / "run"
    place = ("--run-dir", str(run_dir), "--data-dir", str(tmp_path / "data"))
    options = ("--wav", str(tmp_path / "out.wav"), "--voice", "nobody")
    result = run("say", "--start", *place, *options, "Hello.")
    assert result.returncode == 1
    assert "no voice 'nobody' is installed (installed: small)" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert processes_of(run_dir) == []
    assert not run_dir.exists()


def test_start_with_a_voice_that_cannot_be_loaded_says_why_at_once(tmp_path):
    """As with a damaged installation: the default voice is there, and one of its files is not."""
    voice = tmp_path / "data" / "voices" / "small"
    shutil.copytree(BUILT_IN, voice)
    (voice / "decode.onnx").write_bytes(b"no graph")
    place = ("--run-dir", str(tmp_path / "run"), "--data-dir", str(tmp_path / "data"))
    result = run("say", "--start", *place, "--wav", str(tmp_path / "out.wav"), "Hello.")
    assert result.returncode == 3
    assert "decode.onnx has 8 bytes" in result.stderr.splitlines()[-1]
    assert 1 <= result.stderr.count("error engine: ") <= 2, "it is loaded once, and when asked for"
    assert processes_of(tmp_path / "run") == []


def test_start_uses_a_daemon_that_runs(quiet_daemon):
    with listening(quiet_daemon) as listener:
        done(run("say", "--start", *at(quiet_daemon), "Hi."))
        quiet_daemon.wait_until(
            lambda: any(e["event"] == "ended" for e in listener.events), PATIENCE_S, "its end"
        )
    with quiet_daemon.client() as client:
        assert client.call("ping")["ok"]


def test_start_that_is_killed_takes_its_daemon_along(tmp_path, voices_dir):
    run_dir, output = tmp_path / "run", tmp_path / "out.wav"
    place = ("--run-dir", str(run_dir), "--data-dir", str(voices_dir), "--wav", str(output))
    process = spawn("say", "--start", *place, "--voice", "joe-us", "--json", LONG)
    for line in process.stdout:
        if json.loads(line)["event"] == "started":
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 3
    process.kill()
    finish(process)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive
    assert not list(run_dir.iterdir())


def test_a_daemon_started_in_the_same_line_is_waited_for(tmp_path, voices_dir):
    run_dir, data = tmp_path / "run", ("--data-dir", str(voices_dir))
    output = ("--wav", str(tmp_path / "out.wav"))
    daemon = spawn("serve", "--run-dir", str(run_dir), *data, *output, "--voice", "joe-us")
    try:
        done(run("say", "--run-dir", str(run_dir), "Hi."))
    finally:
        daemon.terminate()
        assert finish(daemon).returncode == 0
    assert list(run_dir.iterdir()) == []


def test_a_daemon_ended_while_it_starts_leaves_nothing(tmp_path):
    run_dir = tmp_path / "run"
    daemon = spawn("serve", "--run-dir", str(run_dir), "--data-dir", str(tmp_path / "data"))
    while not (run_dir / "lock").exists() or not (run_dir / "lock").stat().st_size:
        assert daemon.poll() is None
    daemon.terminate()
    assert finish(daemon).returncode == 0
    assert list(run_dir.iterdir()) == []
