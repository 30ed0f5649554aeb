"""Does `utterd tune apply` help? Measures before and after it, idle and loaded, and prints both.

Wake-up latency is a real-time thread that sleeps to absolute deadlines on the core of the audio
thread. Text to first PCM is asked of a running daemon (stages `received` to `first_written` of its
`ended` events), in the protocol alone; without one, that part is left out and said so. Power is
read from RAPL where the processor tells it. The load is one busy process a core plus one that
copies memory. What was applied is restored at the end. Needs root to apply.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import zmq

from utterd.sysconfig.config import Config, load
from utterd.sysconfig.journal import FOLDER, Journal
from utterd.sysconfig.knob import Machine
from utterd.sysconfig.latency import measure
from utterd.sysconfig.nvml import Nvml
from utterd.sysconfig.placement import place
from utterd.sysconfig.report import table
from utterd.sysconfig.sysfs import Sysfs
from utterd.sysconfig.tuner import Tuner

RAPL = "/sys/class/powercap"


def main() -> None:
    """Measure, apply, measure, restore, print."""
    options = parse()
    fs, config = Sysfs(), load(None, options.profile)
    nvml = Nvml.open()
    tuner = Tuner(Machine(fs, nvml), Journal(options.journal))
    result: dict[str, Any] = {"machine": describe(), "profile": config.profile.name, "rows": []}
    try:
        due = tuner.plan(config).changes
        result["changes"] = [f"{c.path}: {c.old} -> {c.new}" for c in due]
        result["rows"] += both("before", fs, config, options)
        progress(f"applying {len(due)} changes")
        applied, _ = tuner.apply(config)
        result["outcomes"] = sorted({str(one.outcome) for one in applied})
        result["rows"] += both("after", fs, config, options)
    finally:
        tuner.restore()
        nvml.close()
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        show(result)


def both(when: str, fs: Sysfs, config: Config, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row idle, one row loaded."""
    rows = [row(when, "idle", fs, config, options)]
    with load_on_every_core():
        time.sleep(1)
        rows.append(row(when, "loaded", fs, config, options))
    return rows


def row(
    when: str, state: str, fs: Sysfs, config: Config, options: argparse.Namespace
) -> dict[str, Any]:
    """Everything that is measured, in one state of the machine."""
    progress(f"{when}, {state}: wake-up latency for {options.seconds:g} s")
    cpu = max(place(fs, config).audio)
    energy, began = joules(fs), time.monotonic()
    wake_ups = measure(options.seconds, cpu)
    spent, seconds = joules(fs), time.monotonic() - began
    watts = round((spent - energy) / seconds, 2) if energy is not None and spent else None
    found: dict[str, Any] = {
        "when": when,
        "state": state,
        "load": round(os.getloadavg()[0], 2),
        "wake_up_us": asdict(wake_ups),
        "watts": watts,
        "text_to_pcm_ms": None,
    }
    if options.run is not None:
        progress(f"{when}, {state}: {options.rounds} texts to first PCM")
        found["text_to_pcm_ms"] = text_to_pcm(options.run, options.text, options.rounds)
    return found


def text_to_pcm(run: Path, text: str, rounds: int) -> dict[str, float]:
    """Speak through the daemon; statistics of `received` to `first_written` in ms."""
    context = zmq.Context()
    try:
        events = context.socket(zmq.SUB)
        events.connect(f"ipc://{run / 'events.sock'}")
        events.subscribe(b"ended")
        control = context.socket(zmq.DEALER)
        control.connect(f"ipc://{run / 'control.sock'}")
        time.sleep(0.3)  # a subscription needs a moment to arrive
        spans = [one_text(control, events, text) for _ in range(rounds + 1)][1:]
    finally:
        context.destroy(linger=0)
    spans.sort()
    return {
        "median": round(statistics.median(spans), 2),
        "p95": round(spans[min(len(spans) - 1, len(spans) * 95 // 100)], 2),
        "max": round(spans[-1], 2),
        "count": len(spans),
    }


def one_text(control: "zmq.Socket[bytes]", events: "zmq.Socket[bytes]", text: str) -> float:
    """Speak once and wait for the end; ms from the socket to the ring."""
    name = uuid.uuid4().hex
    body = {"command": "speak", "text": text, "id": name, "client": "bench-tuning"}
    control.send(json.dumps(body).encode())
    if not control.poll(10_000):
        sys.exit("the daemon does not answer; start one with `utterd serve`")
    reply = json.loads(control.recv())
    if not reply["ok"]:
        sys.exit(f"the daemon refused: {reply['error']['message']}")
    while events.poll(60_000):
        event = json.loads(events.recv_multipart()[1])
        if event["id"] == name:
            stages = event["stages"]
            if "first_written" not in stages:
                sys.exit("nothing was spoken: give --text in a language of the voice")
            return float(stages["first_written"] - stages["received"]) / 1e6
    sys.exit("no end of the utterance within 60 s")


@contextmanager
def load_on_every_core() -> Iterator[None]:
    """A busy process a core and one that copies memory, until the block ends."""
    works = [burn] * (os.cpu_count() or 1) + [copy]
    children = [multiprocessing.Process(target=work, daemon=True) for work in works]
    for child in children:
        child.start()
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.join()


def burn() -> None:
    """Compute."""
    while True:
        sum(range(10_000))


def copy() -> None:
    """Move memory that does not fit a cache."""
    source = bytearray(64 << 20)
    while True:
        bytes(source)


def joules(fs: Sysfs) -> float | None:
    """Energy that the processor packages have used, in J; None where it can't be told."""
    found = [fs.number(f"{path}/energy_uj") for path in fs.match(RAPL, "intel-rapl:?")]
    told = [value for value in found if value is not None]
    return sum(told) / 1e6 if told else None


def describe() -> dict[str, Any]:
    """The machine, for the record."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    machine = result["machine"]
    print(f"{machine['cores']} cores, kernel {machine['kernel']}, load {machine['load']} at first")
    print(f"profile {result['profile']}: {len(result['changes'])} changes, {result['outcomes']}")
    for change in result["changes"]:
        print(f"  {change}")
    rows = []
    for one in result["rows"]:
        wake_up, text = one["wake_up_us"], one["text_to_pcm_ms"]
        rows.append(
            (
                one["when"],
                one["state"],
                f"{wake_up['median_us']:.0f} / {wake_up['p99_us']:.0f} / {wake_up['max_us']:.0f}",
                f"{text['median']} / {text['p95']} / {text['max']}" if text else "no daemon given",
                "not told" if one["watts"] is None else f"{one['watts']}",
                f"{one['load']}",
            )
        )
    head = (
        "WHEN",
        "STATE",
        "WAKE-UP us (median / p99 / max)",
        "TEXT TO PCM ms (median / p95 / max)",
    )
    print(table((*head, "WATTS", "LOAD"), rows))
    if not result["rows"][0]["wake_up_us"]["realtime"]:
        print("not real-time: SCHED_FIFO was not granted")


def progress(words: str) -> None:
    """Say on standard error what goes on."""
    print(words, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="car", help="kiosk, car (default) or benchmark")
    parser.add_argument("--seconds", type=float, default=5.0, help="of wake-ups a row (5)")
    parser.add_argument("--rounds", type=int, default=20, help="texts a row (20)")
    parser.add_argument("--text", default="前方三百米右转", help="in a language of the voice")
    parser.add_argument("--run", type=Path, help="folder of a running daemon's sockets")
    parser.add_argument("--journal", type=Path, default=FOLDER, help=f"default {FOLDER}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    main()
