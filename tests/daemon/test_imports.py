"""What the service carries in memory for months without ever needing it."""

import subprocess
import sys

HEAVY = ("onnxruntime", "sounddevice", "soundfile", "soxr", "opencc", "torch", "prometheus_client")
PROGRAM = "import sys, utterd.daemon.main; print([name for name in {} if name in sys.modules])"


def test_the_daemon_loads_neither_runtimes_nor_sound_libraries() -> None:
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(HEAVY)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert loaded.stdout.strip() == "[]"
