"""Kills the worker, the player, the daemon and the sound server at random moments of speech.

A stream of durable lines is spoken through a real sound server. Afterwards every line must have
been heard to its end exactly once and in order, and the recording tells how long it was silent
after each kill.
"""

import argparse
import json
import os
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.daemon_process import DaemonProcess
from tests.sound_server import Capture, SoundServer
from utterd.daemon.bench import statistics_of
from utterd.daemon.client import DaemonError

AUDIBLE = 10 ** (-50 / 20)
LINE = "Line number {} of this long reading, which goes on and on, until somebody stops it."


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--players", type=int, default=50)
    parser.add_argument("--daemons", type=int, default=20)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--voice", default="joe-us")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--voices-dir", type=Path, required=True, help="data folder with the voice")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    server = SoundServer()
    with tempfile.TemporaryDirectory(prefix="utterd-kills.") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "voices").symlink_to(options.voices_dir.absolute() / "voices")
        daemon = DaemonProcess(
            Path(folder) / "run", data, "--voice", options.voice, environment=server.environment
        )
        try:
            result = Butcher(server, daemon, data / "journal.sqlite", options).run()
        finally:
            if daemon.process.poll() is None:
                daemon.stop()
            server.close()
    if options.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name}: {value}")
    sys.exit(1 if result["lost"] or result["doubled"] or result["disordered"] else 0)


class Butcher:
    """Feeds lines, kills, and keeps the books."""

    def __init__(
        self, server: SoundServer, daemon: DaemonProcess, journal: Path, options: argparse.Namespace
    ) -> None:
        self.server = server
        self.daemon = daemon
        self.journal = journal
        self.dice = random.Random(options.seed)
        self.plan = (
            ["worker"] * options.workers
            + ["player"] * options.players
            + ["daemon"] * options.daemons
            + ["server"] * options.servers
        )
        self.dice.shuffle(self.plan)
        self.accepted: list[str] = []
        self.ended: list[str] = []
        self.gaps: dict[str, list[float]] = {kind: [] for kind in set(self.plan)}
        self.over = threading.Event()

    def run(self) -> dict[str, Any]:
        """All kills, then wait until all that was accepted was heard."""
        listener = threading.Thread(target=self.listen)
        listener.start()
        for number, kind in enumerate(self.plan, start=1):
            self.feed()
            time.sleep(self.dice.uniform(0.3, 2.0))
            self.gaps[kind].append(self.strike(kind))
            print(f"\r{number} of {len(self.plan)}: {kind}   ", end="", file=sys.stderr)
        deadline = time.monotonic() + 300
        while self.waiting() and time.monotonic() < deadline:
            time.sleep(0.5)
        time.sleep(1.0)
        self.over.set()
        listener.join()
        print(file=sys.stderr)
        times = Counter(self.ended)
        heard = [id_ for id_ in self.ended if id_ in set(self.accepted)]
        return {
            "kills": dict(Counter(self.plan)),
            "accepted": len(self.accepted),
            "lost": [id_ for id_ in self.accepted if times[id_] == 0],
            "doubled": [id_ for id_, count in times.items() if count > 1],
            "disordered": heard != sorted(heard, key=self.accepted.index),
            "silence_ms_after": {k: statistics_of(v) for k, v in self.gaps.items() if v},
            "load": round(os.getloadavg()[0], 2),
        }

    def feed(self) -> None:
        """Keep a few lines waiting."""
        while self.waiting() < 3:
            id_ = f"line{len(self.accepted):04d}"
            try:
                with self.daemon.client("reader") as client:
                    client.call("speak", text=LINE.format(len(self.accepted)), id=id_, durable=True)
            except DaemonError:
                time.sleep(0.1)
            else:
                self.accepted.append(id_)

    def waiting(self) -> int:
        """Lines on disk that were not heard to their end."""
        if not self.journal.exists():
            return 0
        with sqlite3.connect(f"file:{self.journal}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM utterance").fetchone()[0])

    def strike(self, kind: str) -> float:
        """Kill one thing in the middle of speech.

        Returns:
            ms without sound at the speaker after it.
        """
        if kind == "server":
            return self.strike_server()
        with self.server.capture() as recorder:
            time.sleep(0.1)
            at_ns = time.monotonic_ns()
            if kind == "daemon":
                self.daemon.process.kill()
                self.daemon.process.wait()
                self.daemon.start(wait=False)
            else:
                module = f"utterd.{'engine.worker' if kind == 'worker' else 'audio.main'}"
                self.kill_child(module)
            time.sleep(8.0 if kind == "daemon" else 4.0)
        return longest_silence_ms(recorder.result, at_ns)

    def kill_child(self, module: str) -> None:
        """SIGKILL, if it lives just now."""
        try:
            self.daemon.child(module).kill()
        except (ValueError, psutil.NoSuchProcess):
            return

    def strike_server(self) -> float:
        """Restart the sound server: ms from its being back to sound."""
        self.server.kill()
        self.server.start()
        back_ns = time.monotonic_ns()
        with self.server.capture() as recorder:
            time.sleep(4.0)
        capture: Capture = recorder.result
        begin = max(0, capture.frame_at(back_ns))
        loud = np.flatnonzero(np.abs(capture.samples[begin:]) > AUDIBLE)
        return (capture.time_ns(begin + int(loud[0])) - back_ns) / 1e6 if len(loud) else 4000.0

    def listen(self) -> None:
        """Collect terminal events over all lives of the daemon."""
        while not self.over.is_set():
            try:
                with self.daemon.client() as client:
                    client.subscribe("ended")
                    while not self.over.is_set() and self.daemon.process.poll() is None:
                        for event in client.events(timeout_s=0.2):
                            self.ended.append(event["id"])
            except DaemonError:
                time.sleep(0.05)


def longest_silence_ms(capture: Capture, from_ns: int) -> float:
    """The longest run without a sample above -50 dBFS, beyond the pauses of speech (250 ms)."""
    begin = max(0, capture.frame_at(from_ns))
    loud = np.flatnonzero(np.abs(capture.samples[begin:]) > AUDIBLE)
    edges = np.concatenate([[0], loud, [len(capture.samples) - begin]])
    longest = float(np.max(np.diff(edges))) / capture.rate * 1000
    return longest if longest > 250 else 0.0


if __name__ == "__main__":
    main()
