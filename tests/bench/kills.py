"""Kills the worker, the player, the daemon and the sound server at random moments of speech.

A stream of durable lines is spoken through a real sound server. Afterwards every line must have
been heard to its end exactly once and in order. After each kill the recording of the speaker's
monitor tells how long nothing was heard:

worker    samples that lie ready in the ring bridge most losses: `bridged` counts them, silence 0
start     the worker again, but at the beginning of a lone line, when nothing lies ready: the time
          from the kill to sound (`undisturbed` is the time from the request to sound without one)
player    silence from the kill to sound
daemon    silence from the kill to sound; and the time until its socket answers
server    the time from its being back to sound, and the whole silence with its own restart
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
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.hearing import first_sound_ns, longest_silence_ms
from tests.bench.latency import UNCACHED
from tests.daemon_process import DaemonProcess
from tests.sound_server import Capture, SoundServer
from utterd.daemon.bench import statistics_of
from utterd.daemon.client import DaemonError
from utterd.daemon.events import TERMINAL

LINE = "Line number {} of this long reading, which goes on and on, until somebody stops it."
KINDS = ("worker", "start", "player", "daemon", "server")
MODULES = {
    "worker": "utterd.engine.worker",
    "start": "utterd.engine.worker",
    "player": "utterd.audio.main",
}
WATCHED_S = {"worker": 4.0, "start": 4.0, "player": 4.0, "daemon": 8.0, "server": 6.0}
"""How long after a kill the monitor is recorded; a silence that lasts longer counts as so long."""
AHEAD = 3
"""Lines that wait at any time."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--starts", type=int, default=30)
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
            Path(folder) / "run",
            data,
            "--voice",
            options.voice,
            environment=server.environment | UNCACHED,
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
        counts = (options.workers, options.starts, options.players, options.daemons)
        self.plan = [
            kind
            for kind, count in zip(KINDS, (*counts, options.servers), strict=True)
            for _ in range(count)
        ]
        self.dice.shuffle(self.plan)
        self.accepted: list[str] = []
        self.ended: list[str] = []
        self.otherwise: list[str] = []
        """Lines that failed, were dropped or cancelled: none should."""
        self.figures: dict[str, list[float]] = defaultdict(list)
        self.pause_ms = 0.0
        """The longest silence of undisturbed speech."""
        self.fed = threading.Event()
        """Lines are fed while it is set."""
        self.over = threading.Event()

    def run(self) -> dict[str, Any]:
        """All kills, then wait until all that was accepted was heard."""
        threads = [threading.Thread(target=work) for work in (self.listen, self.feed)]
        for thread in threads:
            thread.start()
        try:
            self.calibrate()
            for number, kind in enumerate(self.plan, start=1):
                self.strike(kind)
                print(f"\r{number} of {len(self.plan)}: {kind}   ", end="", file=sys.stderr)
            self.fed.clear()
            self.until_heard()
            time.sleep(1.0)
        finally:
            self.over.set()
            self.fed.set()
            for thread in threads:
                thread.join()
        print(file=sys.stderr)
        return self.report()

    def report(self) -> dict[str, Any]:
        """What became of the lines, and the figures."""
        times = Counter(self.ended)
        heard = [id_ for id_ in self.ended if id_ in set(self.accepted)]
        result: dict[str, Any] = {
            "kills": dict(Counter(self.plan)),
            "accepted": len(self.accepted),
            "lost": [id_ for id_ in self.accepted if times[id_] == 0],
            "ended_otherwise": self.otherwise,
            "doubled": [id_ for id_, count in times.items() if count > 1],
            "disordered": heard != sorted(heard, key=self.accepted.index),
            "longest_natural_pause_ms": round(self.pause_ms, 1),
            "bridged": {
                kind: sum(ms == 0.0 for ms in self.figures[f"{kind}_silence_ms"])
                for kind in KINDS
                if f"{kind}_silence_ms" in self.figures
            },
        }
        result |= {name: statistics_of(values) for name, values in sorted(self.figures.items())}
        return result | {"load": round(os.getloadavg()[0], 2)}

    # ---- what is spoken ----

    def speak(self) -> None:
        """One more durable line."""
        id_ = f"line{len(self.accepted):05d}"
        try:
            with self.daemon.client("reader") as client:
                client.call("speak", text=LINE.format(len(self.accepted)), id=id_, durable=True)
        except DaemonError:
            # Whether it was accepted is not known where the daemon died over it: look it up.
            if not self.is_journaled(id_) and id_ not in self.ended:
                time.sleep(0.05)
                return
        self.accepted.append(id_)

    def feed(self) -> None:
        """Keep a few lines waiting."""
        while not self.over.is_set():
            self.fed.wait()
            if self.waiting() < AHEAD and not self.over.is_set():
                self.speak()
            else:
                time.sleep(0.05)

    def waiting(self) -> int:
        """Lines on disk that were not heard to their end."""
        return int(self.ask("SELECT count(*) FROM utterance"))

    def until_heard(self) -> None:
        """Wait until nothing waits any more."""
        deadline = time.monotonic() + 300
        while self.waiting():
            if time.monotonic() > deadline:
                sys.exit(
                    f"{self.waiting()} lines are not said; log:\n{self.daemon.log.read_text()}"
                )
            time.sleep(0.02)

    def is_journaled(self, id_: str) -> bool:
        """Whether a line is on disk."""
        return bool(self.ask("SELECT count(*) FROM utterance WHERE id = ?", id_))

    def ask(self, query: str, *values: str) -> int:
        """One number of the journal."""
        if not self.journal.exists():
            return 0
        database = sqlite3.connect(f"file:{self.journal}?mode=ro", uri=True, timeout=10.0)
        try:
            return int(database.execute(query, values).fetchone()[0])
        finally:
            database.close()

    def listen(self) -> None:
        """Collect terminal events over all lives of the daemon."""
        while not self.over.is_set():
            try:
                with self.daemon.client() as client:
                    client.subscribe(*TERMINAL)
                    while not self.over.is_set() and self.daemon.process.poll() is None:
                        for event in client.events(timeout_s=0.2):
                            (self.ended if event["event"] == "ended" else self.otherwise).append(
                                event["id"]
                            )
            except DaemonError:
                time.sleep(0.05)

    # ---- what is killed ----

    def calibrate(self) -> None:
        """Learn the pauses of these lines, and how soon a lone one sounds."""
        for _ in range(5):
            with self.server.capture() as recorder:
                asked_ns = time.monotonic_ns()
                self.speak()
                self.until_heard()
            sound_ns = first_sound_ns(recorder.result, asked_ns)
            self.figures["undisturbed_ms"].append((sound_ns - asked_ns) / 1e6)
        self.fed.set()
        time.sleep(5.0)
        with self.server.capture() as recorder:
            begin_ns = time.monotonic_ns()
            time.sleep(15.0)
        self.pause_ms = longest_silence_ms(recorder.result, begin_ns)

    def strike(self, kind: str) -> None:
        """Kill one thing in the middle of speech, and note what was heard."""
        if kind == "start":
            self.strike_start()
            return
        self.fed.set()
        while self.waiting() < AHEAD:
            time.sleep(0.02)
        time.sleep(self.dice.uniform(0.3, 2.0))
        if kind == "server":
            self.strike_server()
            return
        with self.server.capture() as recorder:
            time.sleep(0.1)
            killed_ns = time.monotonic_ns()
            if kind == "daemon":
                self.restart_daemon(killed_ns)
            else:
                self.kill_child(kind)
            time.sleep(max(0.0, WATCHED_S[kind] - (time.monotonic_ns() - killed_ns) / 1e9))
        self.note_silence(kind, recorder.result, killed_ns)

    def strike_start(self) -> None:
        """Kill the worker before or while a lone line begins to sound."""
        self.fed.clear()
        self.until_heard()
        with self.server.capture() as recorder:
            self.speak()
            time.sleep(self.dice.uniform(0.0, 0.3))
            killed_ns = time.monotonic_ns()
            self.kill_child("start")
            time.sleep(WATCHED_S["start"])
        self.note_silence("start", recorder.result, killed_ns)

    def note_silence(self, kind: str, capture: Capture, killed_ns: int) -> None:
        """How long nothing was heard after a kill, beyond the pauses of speech.

        Only as long as there is something to say: a lone line may end within the recording.
        """
        until_ns = killed_ns + int(WATCHED_S[kind] * 1e9)
        silence_ms = longest_silence_ms(capture, killed_ns, until_ns)
        self.figures[f"{kind}_silence_ms"].append(
            silence_ms if silence_ms > 1.1 * self.pause_ms else 0.0
        )

    def restart_daemon(self, killed_ns: int) -> None:
        """SIGKILL the daemon, start it, and note when its socket answers."""
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.daemon.start(wait=False)
        while True:
            try:
                with self.daemon.client() as client:
                    client.call("ping", timeout_s=0.2)
            except DaemonError:
                continue
            break
        self.figures["daemon_socket_ms"].append((time.monotonic_ns() - killed_ns) / 1e6)

    def kill_child(self, kind: str) -> None:
        """SIGKILL, if it lives just now."""
        try:
            self.daemon.child(MODULES[kind]).kill()
        except (ValueError, psutil.NoSuchProcess):
            return

    def strike_server(self) -> None:
        """Restart the sound server."""
        killed_ns = time.monotonic_ns()
        self.server.kill()
        self.server.start()
        back_ns = time.monotonic_ns()
        with self.server.capture() as recorder:
            time.sleep(WATCHED_S["server"])
        sound_ns = first_sound_ns(recorder.result, back_ns) or time.monotonic_ns()
        self.figures["server_back_to_sound_ms"].append((sound_ns - back_ns) / 1e6)
        self.figures["server_silence_ms"].append((sound_ns - killed_ns) / 1e6)


if __name__ == "__main__":
    main()
