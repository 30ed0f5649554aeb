"""What a worker costs: its stages, the time outside the network, threads, memory, and stopping.

    python tests/bench/engine.py [--data DIR] [--voices small kokoro joe-us] [--threads 1 2]

A real worker a voice and thread count, its samples thrown away as soon as they lie in the ring.
`overhead` is all the time of an utterance that isn't spent in the network or waiting for room.
`free after fence` is the time from raising the fence in the middle of a sentence to the worker's
word that it has left it.
"""

import argparse
import json
import os
import select
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from utterd.audio.ring import Ring
from utterd.engine.client import WorkerProcess
from utterd.engine.messages import (
    Abandoned,
    Alive,
    Broken,
    Configure,
    Failed,
    Finished,
    FirstAudio,
    FromWorker,
    Ready,
    Say,
    Shutdown,
)
from utterd.engine.voices import install

SENTENCES = {
    "zh": (
        "导航到最近的加油站。",
        "前方三百米右转，然后一直往前走五公里，请注意减速。",
        "今天晚上有小雨，出门请带伞，气温在十八到二十四度之间，风不大。",
    ),
    "en": (
        "Turn left now.",
        "The nearest station is five miles away.",
        "It will rain in the evening, so please take an umbrella with you when you go out.",
    ),
}
STAGES = ("received", "started_synthesis", "phonemes", "encoded", "first_chunk", "first_written")
PATIENCE_S = 120.0


class Bench:
    """One worker under measurement."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.ring = Ring.create()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self.process = WorkerProcess(self.ring.fd, self._wake)
        self.process.send(Configure(voice_dir=str(folder), threads=threads))
        self.rss_bytes = 0
        self._generation = 0

    def wait(self, *kinds: type[FromWorker]) -> list[FromWorker]:
        """All messages up to the first of these kinds."""
        said: list[FromWorker] = []
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if select.select([self.process], [], [], 0.01)[0]:
                said += self.process.receive()
            self.ring.advance(self.ring.head, self.ring.head)
            for message in said:
                if isinstance(message, Alive):
                    self.rss_bytes = max(self.rss_bytes, message.rss_bytes)
                if isinstance(message, Broken | Failed):
                    raise SystemExit(f"engine.py: {message.message}")
            if any(isinstance(message, kinds) for message in said):
                return said
        raise SystemExit(f"engine.py: the worker said nothing for {PATIENCE_S:.0f} s")

    def say(self, text: str) -> None:
        """Begin to speak."""
        self._generation += 1
        self.process.send(Say(generation=self._generation, utterance="bench", text=text))

    def fence(self) -> None:
        """Drop what is being spoken."""
        self.ring.fence = self._generation + 1

    def cpu_s(self) -> float:
        """Processor time of the worker so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the worker."""
        self.process.send(Shutdown())
        self.process.close(5.0)
        self.ring.close()
        os.close(self._wake)


def measure(folder: Path, threads: int, runs: int, progress: "Progress") -> dict[str, Any]:
    """All figures of one voice with one number of threads."""
    began = time.monotonic()
    bench = Bench(folder, threads)
    try:
        ready = bench.wait(Ready, Broken)[-1]
        assert isinstance(ready, Ready)
        result: dict[str, Any] = {
            "threads": threads,
            "runtime": ready.runtime,
            "start_to_ready_s": round(time.monotonic() - began, 2),
            "load_ms": round(ready.load_ms),
            "warm_ms": round(ready.warm_ms),
        }
        stages: dict[str, list[float]] = {name: [] for name in STAGES[1:]}
        overhead: list[float] = []
        factors: list[float] = []
        cpu_factors: list[float] = []
        for run in range(runs):
            for text in SENTENCES[ready.languages[0]]:
                cpu = bench.cpu_s()
                bench.say(text)
                said = bench.wait(Finished)
                cpu = bench.cpu_s() - cpu
                first = next(m for m in said if isinstance(m, FirstAudio))
                finished = next(m for m in said if isinstance(m, Finished))
                stamps = [getattr(first, f"{name}_ns") for name in STAGES]
                for name, before, after in zip(STAGES[1:], stamps, stamps[1:], strict=False):
                    stages[name].append((after - before) / 1e6)
                overhead.append(finished.overhead_ms)
                seconds = finished.samples / ready.sample_rate
                factors.append(finished.synthesis_ms / 1000 / seconds)
                cpu_factors.append(cpu / seconds)
            progress.step(f"{folder.name} x{threads}: run {run + 1} of {runs}")
        result["stages_ms"] = {name: spread(values) for name, values in stages.items()}
        result["overhead_ms"] = spread(overhead)
        result["real_time_factor"] = spread(factors)
        result["cpu_s_per_s_of_speech"] = spread(cpu_factors)
        result["free_after_fence_ms"] = spread(fences(bench, ready, runs, progress))
        cpu, began = bench.cpu_s(), time.monotonic()
        time.sleep(3.0)
        result["idle_percent_of_a_core"] = round(
            100 * (bench.cpu_s() - cpu) / (time.monotonic() - began), 2
        )
        bench.wait(Alive)
        result["rss_mb"] = round(bench.rss_bytes / 1e6)
        return result
    finally:
        bench.close()


def fences(bench: Bench, ready: Ready, runs: int, progress: "Progress") -> list[float]:
    """From the fence to `Abandoned`, raised at several places of a long sentence, in ms."""
    text = SENTENCES[ready.languages[0]][-1]
    free = []
    for run in range(max(5, runs)):
        bench.say(text)
        time.sleep(0.05 + 0.03 * (run % 5) * ready.real_time_factor)
        bench.fence()
        raised = time.monotonic_ns()
        ends = [m for m in bench.wait(Abandoned, Finished) if isinstance(m, Abandoned)]
        if ends:
            free.append((time.monotonic_ns() - raised) / 1e6)
        progress.step("fence")
    return free or [0.0]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th and 99th of a hundred, and how many there are."""
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return {
        "median": round(statistics.median(ordered), 3),
        "p95": at(0.95),
        "p99": at(0.99),
        "count": len(ordered),
    }


class Progress:
    """A line on standard error, where that is a terminal."""

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total

    def step(self, what: str) -> None:
        """One more step is done."""
        self._done += 1
        if sys.stderr.isatty():
            print(f"\r\033[K{100 * self._done // self._total:3d} % {what}", end="", file=sys.stderr)

    def end(self) -> None:
        """Clear the line."""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)


def show(voice: str, figures: dict[str, Any]) -> None:
    """Print the figures of one voice and thread count."""
    print(f"\n{voice}, {figures['threads']} threads, {figures['runtime']}")
    for name in ("start_to_ready_s", "load_ms", "warm_ms", "rss_mb", "idle_percent_of_a_core"):
        print(f"  {name:<28} {figures[name]:>10}")
    rows = {f"{name} (ms)": values for name, values in figures["stages_ms"].items()}
    rows["overhead (ms)"] = figures["overhead_ms"]
    rows["free after fence (ms)"] = figures["free_after_fence_ms"]
    rows["real-time factor"] = figures["real_time_factor"]
    rows["cpu s a s of speech"] = figures["cpu_s_per_s_of_speech"]
    print(f"  {'':<28} {'median':>10} {'p95':>10} {'p99':>10} {'n':>5}")
    for name, v in rows.items():
        print(f"  {name:<28} {v['median']:>10} {v['p95']:>10} {v['p99']:>10} {v['count']:>5}")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("UTTERD_TEST_DATA", "~/.cache/utterd-tests")
    parser.add_argument(
        "--data", type=Path, default=Path(data), help="holds voices/NAME, beside small"
    )
    parser.add_argument("--voices", nargs="+", default=["small", "kokoro", "joe-us"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, len(os.sched_getaffinity(0))])
    parser.add_argument("--runs", type=int, default=10, help="times each sentence is said")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    options = parser.parse_args()
    listed = install.list_voices(options.data.expanduser())
    folders = {one.name: one.package.folder for one in listed if one.package is not None}
    if missing := [name for name in options.voices if name not in folders]:
        parser.error(f"no voice {', '.join(missing)}; there is {', '.join(folders)}")
    steps = len(options.voices) * len(options.threads) * (options.runs + max(5, options.runs))
    progress = Progress(steps)
    load = os.getloadavg()
    results: dict[str, Any] = {"load_average": load, "cores": len(os.sched_getaffinity(0))}
    for voice in options.voices:
        results[voice] = [
            measure(folders[voice], threads, options.runs, progress) for threads in options.threads
        ]
    progress.end()
    if options.json:
        print(json.dumps(results))
        return
    print(f"cores {results['cores']}, load average {load[0]:.1f} {load[1]:.1f} {load[2]:.1f}")
    for voice in options.voices:
        for figures in results[voice]:
            show(voice, figures)


if __name__ == "__main__":
    main()
