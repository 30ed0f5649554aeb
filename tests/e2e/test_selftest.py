"""The self-test hears its chirp where there is a monitor, and says so where there is none."""

import json
import os
import subprocess
import sys

import pytest

from tests.daemon_process import DaemonProcess


def run(daemon: DaemonProcess, **environment: str) -> tuple[int, dict]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "utterd.daemon.cli", "selftest", "--json"),
            *("--run-dir", str(daemon.run_dir)),
        ],
        env={**os.environ, **environment},
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.returncode, json.loads(done.stdout)


def test_the_chirp_is_heard_at_the_monitor(tmp_path, voices_dir, sound_server):
    daemon = DaemonProcess(
        tmp_path / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment=sound_server.environment,
    )
    try:
        code, result = run(daemon, **sound_server.environment)
    finally:
        daemon.stop()
    assert (code, result["played"], result["heard"]) == (0, True, True)
    assert result["first_sound_ms"] > 0


def test_a_chirp_that_goes_elsewhere_is_not_heard(quiet_daemon, sound_server):
    code, result = run(quiet_daemon, **sound_server.environment)
    assert (code, result["played"], result["heard"]) == (1, True, False)


def test_a_chirp_without_a_device_says_what_the_device_lacks(tmp_path, voices_dir):
    nowhere = {"UTTERD_AUDIO_SINK": "wav", "UTTERD_AUDIO_WAV": str(tmp_path / "no" / "x.wav")}
    daemon = DaemonProcess(
        tmp_path / "run", voices_dir, "--voice", "joe-us", environment=nowhere, wait=False
    )
    try:
        code, result = run(daemon)
    finally:
        daemon.stop()
    assert (code, result["played"]) == (1, False)
    assert nowhere["UTTERD_AUDIO_WAV"] in result["problem"]


def test_a_recorder_that_finds_no_server_after_a_while_tells_nothing(quiet_daemon, tmp_path):
    recorder = tmp_path / "pw-record"
    recorder.write_text("#!/bin/sh\nsleep 0.5\nexit 1\n")
    recorder.chmod(0o755)
    code, result = run(quiet_daemon, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (code, result["played"], result["heard"]) == (0, True, None)
    assert "no sound server" in result["monitor"]


@pytest.mark.parametrize("folder", ["/nonexistent"])
def test_without_a_sound_server_nothing_can_be_told(quiet_daemon, folder):
    code, result = run(quiet_daemon, XDG_RUNTIME_DIR=folder)
    assert (code, result["played"], result["heard"]) == (0, True, None)
