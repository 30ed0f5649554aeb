"""Other sound is lowered in turn, and raised again however the daemon ends."""

import subprocess
import sys
import time

from utterd.daemon.ducking import Ducking


def lines(path):
    return path.read_text().split() if path.exists() else []


def wait_for(path, expected):
    deadline = time.monotonic() + 10
    while lines(path) != expected:
        assert time.monotonic() < deadline, lines(path)
        time.sleep(0.01)


def test_commands_run_in_turn_and_once(tmp_path):
    log = tmp_path / "log"
    ducking = Ducking(f"echo down >> {log}", f"echo up >> {log}")
    ducking.speaking(False)
    ducking.speaking(True)
    ducking.speaking(True)
    wait_for(log, ["down"])
    ducking.speaking(False)
    ducking.speaking(False)
    wait_for(log, ["down", "up"])
    ducking.close()
    assert lines(log) == ["down", "up"]


def test_it_is_undone_at_the_end(tmp_path):
    log = tmp_path / "log"
    ducking = Ducking("", f"echo up >> {log}")
    ducking.speaking(True)
    assert lines(log) == []
    ducking.close()
    assert lines(log) == ["up"]


def test_it_is_undone_when_the_daemon_is_killed(tmp_path):
    log = tmp_path / "log"
    program = (
        "import os, signal, sys\n"
        "from utterd.daemon.ducking import Ducking\n"
        "Ducking(sys.argv[1], sys.argv[2]).speaking(True)\n"
        "input()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", program, f"echo down >> {log}", f"echo up >> {log}"],
        stdin=subprocess.PIPE,
    )
    wait_for(log, ["down"])
    assert child.stdin is not None
    with child.stdin:
        child.stdin.write(b"\n")
    assert child.wait(10) < 0
    wait_for(log, ["down", "up"])


def test_no_command_starts_nothing():
    ducking = Ducking("", "")
    ducking.speaking(True)
    assert ducking._children == []
    ducking.close()


def test_a_failing_command_is_told_and_harms_nothing(tmp_path, caplog):
    log = tmp_path / "log"
    ducking = Ducking("exit 3", f"echo up >> {log}")
    ducking.speaking(True)
    ducking.close()
    assert lines(log) == ["up"]
    assert "a ducking command failed" in caplog.text
