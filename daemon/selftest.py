"""`utterd selftest`: plays a chirp and, where the speaker has a monitor, listens for it."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config
from utterd.daemon.events import TERMINAL

CHIRP = "chirp.flac"
ALIKE = 0.3
"""Least correlation with the chirp that counts as heard; noise and other music stay below 0.1."""
RATE = 48_000
_NO_MONITOR = "no sound server with a monitor, or neither pw-record nor parec is installed"


def selftest(options: argparse.Namespace, config: Config) -> int:
    """Play the chirp; 0 if it was played, and heard where that can be told."""
    result = run(config)
    if options.json:
        print(json.dumps(result))
    else:
        print(f"played    {'yes' if result['played'] else 'NO: ' + result['problem']}")
        if result["played"]:
            print(f"sound     after {result['first_sound_ms']:.1f} ms")
        heard = {True: "yes", False: "NO", None: "can't be told: " + result["monitor"]}
        print(f"heard     {heard[result['heard']]}")
    return 0 if result["played"] and result["heard"] is not False else 1


def run(config: Config) -> dict[str, Any]:
    """Play and listen."""
    with Client(config, name=f"selftest-{os.getpid()}") as client, ExitStack() as stack:
        client.subscribe()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="utterd-selftest.")))
        file = folder / "monitor.wav"
        monitor, recorder = _record(file)
        if recorder is not None:
            time.sleep(0.5)  # until it is connected
        event = _play(client)
        heard = None
        if recorder is not None:
            time.sleep(0.3)
            if recorder.poll() is None and file.exists():
                recorder.send_signal(signal.SIGINT)
                recorder.wait()
                heard = _is_in(_samples(Path(__file__).parent / "sounds" / CHIRP), _samples(file))
            else:  # it has found no server, on a busy machine after a while only
                recorder.kill()
                recorder.wait()
                monitor = _NO_MONITOR
        problems = "; ".join(client.call("health")["problems"])
    stages = event.get("stages", {})
    played = event.get("event") == "ended"
    return {
        "played": played,
        "problem": "" if played else problems or str(event.get("message") or event.get("reason")),
        "first_sound_ms": (stages["first_sound"] - stages["received"]) / 1e6 if played else 0.0,
        "monitor": monitor,
        "heard": heard,
    }


def _play(client: Client) -> dict[str, Any]:
    """The terminal event of the chirp."""
    client.call("play_sound", sound=CHIRP, id="chirp", priority="important", ttl_ms=5000)
    for event in client.events(timeout_s=10.0):
        if event["id"] == "chirp" and event["event"] in TERMINAL:
            return event
    raise DaemonError("internal", "the chirp neither ended nor failed within 10 s")


def _record(file: Path) -> "tuple[str, subprocess.Popen[bytes] | None]":
    """Record what the default speaker plays, where the sound server lets us."""
    commands = {
        "pw-record": [
            *("pw-record", "-P", "{ stream.capture.sink = true }"),
            *("--format", "f32", "--rate", str(RATE), "--channels", "1", str(file)),
        ],
        "parec": [
            *("parec", "--device=@DEFAULT_MONITOR@", "--file-format=wav"),
            *(f"--rate={RATE}", "--channels=1", str(file)),
        ],
    }
    for name, command in commands.items():
        if shutil.which(name) is None:
            continue
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(0.3)
        if child.poll() is None:
            return f"{name} records the speaker's monitor", child
    return _NO_MONITOR, None


def _samples(file: Path) -> NDArray[np.float32]:
    from utterd.engine.sounds import read  # noqa: PLC0415 - loads libsndfile

    return read(file, RATE)


def _is_in(wanted: NDArray[np.float32], heard: NDArray[np.float32]) -> bool:
    """Whether `wanted` stands somewhere in `heard`: the highest normalised correlation."""
    if len(heard) < len(wanted):
        return False
    size = 1 << (len(heard) + len(wanted)).bit_length()
    spectrum = np.fft.rfft(heard, size) * np.conj(np.fft.rfft(wanted, size))
    at = int(np.argmax(np.abs(np.fft.irfft(spectrum, size)[: len(heard) - len(wanted) + 1])))
    piece = heard[at : at + len(wanted)]
    norm = float(np.linalg.norm(piece) * np.linalg.norm(wanted))
    return norm > 0 and abs(float(np.dot(piece, wanted))) / norm > ALIKE
