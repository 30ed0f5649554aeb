"""Tests and measurements that are killed leave no process behind."""

import shutil
import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
PROGRAM = """
import sys
from pathlib import Path
from tests.daemon_process import DaemonProcess
from tests.sound_server import SoundServer
sound = SoundServer()
folder = Path(sys.argv[1])
daemon = DaemonProcess(folder / "run", folder / "data", environment=sound.environment)
with sound.capture():
    print(sound.folder, flush=True)
    input()
"""


def test_sound_server_recorder_and_daemon_end_with_those_that_are_killed(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as program:
        folder = program.stdout.readline().strip()
        children = psutil.Process(program.pid).children(recursive=True)
        names = {child.name() for child in children}
        program.kill()
    assert {"dbus-daemon", "pipewire", "wireplumber", "capture"} <= names
    assert any("utterd" in name or "python" in name for name in names)
    _, alive = psutil.wait_procs(children, timeout=20.0)
    assert not alive
    shutil.rmtree(folder)
