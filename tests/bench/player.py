"""Measure the player on a real sound server: its speaker's monitor is what counts.

The speaker is a null sink of PipeWire in real time. Codec, DAC and Bluetooth are not in it.
"""

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.audio.rig import tone
from tests.audio.running import Running
from tests.sound_server import SINK, Capture, SoundServer
from utterd.audio.messages import (
    Anchor,
    Configure,
    DeviceLost,
    Dropped,
    Ended,
    Expect,
    Opened,
    Released,
    Started,
    Underrun,
)

if TYPE_CHECKING:
    from collections.abc import Callable

VOICE_RATE = 24_000
AHEAD_BYTES = 4 * VOICE_RATE * 300 // 1000
"""300 ms of sound in the ring."""
AUDIBLE = 10 ** (-50 / 20)
PERIODS_MS = (2.5, 5.0, 10.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="utterances timed (default 50)")
    parser.add_argument("--wakes", type=int, default=20, help="wakes timed (default 20)")
    parser.add_argument(
        "--ahead-ms", type=float, default=100.0, help="told so long before (default 100)"
    )
    parser.add_argument("--cancels", type=int, default=200, help="cancels timed (default 200)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="continuous sound a period (default 60)"
    )
    parser.add_argument("--kills", type=int, default=3, help="kills of the server (default 3)")
    parser.add_argument("--period-ms", type=float, default=5.0, help="period (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="one part; may be repeated (default all)"
    )
    options = parser.parse_args()
    if min(options.runs, options.wakes, options.cancels, options.kills) < 1:
        parser.error("--runs, --wakes, --cancels and --kills take 1 or more")
    server = SoundServer()
    result: dict[str, Any] = {"period_ms": options.period_ms, "cores": os.cpu_count()}
    try:
        for name, measure in PARTS.items():
            if options.only and name not in options.only:
                continue
            say(f"{name} ...")
            load = os.getloadavg()[0]
            measured = measure(server, options)
            measured["load_average"] = [round(load, 2), round(os.getloadavg()[0], 2)]
            result[name] = measured
            say(f"{name}: {json.dumps(measured)}")
    finally:
        server.close()
    if options.json:
        print(json.dumps(result))


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)

    def quantile(q: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(q * len(ordered)))], 2)

    return {
        "runs": len(ordered),
        "median": round(statistics.median(ordered), 2),
        "p95": quantile(0.95),
        "p99": quantile(0.99),
        "max": round(ordered[-1], 2),
    }


def open_player(server: SoundServer, period_ms: float) -> tuple[Running, Opened]:
    running = Running(Configure(period_ms=period_ms), server.environment)
    return running, running.wait(Opened)


def idle(server: SoundServer, options: argparse.Namespace) -> dict[str, Any]:
    """CPU and memory of a player that has nothing to do, over 20 s: sink kept open, or let go."""
    figures = {}
    for sink in ("device", "null"):
        for name, seconds in (("open", 0.0), ("released", 0.2)):
            configure = Configure(sink=sink, period_ms=options.period_ms, release_after_s=seconds)
            running = Running(configure, server.environment)
            running.wait(Released if seconds else Opened)
            running.listen(2)
            before, begin = cpu_seconds(running.player.pid), time.monotonic()
            running.listen(20)
            used = cpu_seconds(running.player.pid) - before
            figures[f"{sink}_{name}_cpu_percent"] = round(
                100 * used / (time.monotonic() - begin), 3
            )
            figures[f"{sink}_{name}_rss_mb"] = round(rss_bytes(running.player.pid) / 1e6, 1)
            running.close()
    return figures


def cpu_seconds(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((t / "schedstat").read_text().split()[0]) for t in threads) / 1e9


def rss_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def first_sound(capture: Capture, after_ns: int) -> int:
    begin = capture.frame_at(after_ns)
    at = begin + int(np.argmax(np.abs(capture.samples[begin:]) > AUDIBLE))
    return capture.time_ns(at)


def write_to_sound(server: SoundServer, options: argparse.Namespace) -> dict[str, Any]:
    """From the write into the ring to the first sample above -50 dBFS."""
    running, opened = open_player(server, options.period_ms)
    wave = tone(2400, rate=VOICE_RATE)
    written = []
    with server.capture() as recorder:
        for generation in range(1, options.runs + 1):
            running.listen(random.uniform(0.1, 0.2))
            written.append(time.monotonic_ns())
            running.writer.write(generation, 0, wave, VOICE_RATE, last=True)
            running.wait(Ended, lambda e, g=generation: e.generation == g)
            running.listen(0.1)
            progress(generation, options.runs)
    running.close()
    started = [m for m in running.messages if isinstance(m, Started)]
    heard = [first_sound(recorder.result, ns) for ns in written]
    return {
        "monitor": spread([(h - w) / 1e6 for h, w in zip(heard, written, strict=True)]),
        "stamp": spread(
            [(s.first_sound_ns - w) / 1e6 for s, w in zip(started, written, strict=True)]
        ),
        "monitor_minus_stamp": spread(
            [(h - s.first_sound_ns) / 1e6 for h, s in zip(heard, started, strict=True)]
        ),
        "reported_latency_ms": opened.latency_ms,
    }


def wake_to_sound(_: SoundServer, options: argparse.Namespace) -> dict[str, Any]:
    """From the write to the first sound at a speaker that sleeps, against one kept open.

    `unhidden`: the samples are there at once. `hidden`: the player was told to expect sound
    `--ahead-ms` before, as the daemon does while the text is synthesised.
    """
    server = SoundServer(sleeps=True)
    figures: dict[str, Any] = {"ahead_ms": options.ahead_ms}
    try:
        for name, seconds, ahead_ms in (
            ("open", 0.0, 0.0),
            ("unhidden", 0.05, 0.0),
            ("hidden", 0.05, options.ahead_ms),
        ):
            configure = Configure(period_ms=options.period_ms, release_after_s=seconds)
            running = Running(configure, server.environment)
            running.wait(Opened)
            figures[name] = time_wakes(server, running, options.wakes, ahead_ms)
            running.close()
    finally:
        server.close()
    return figures


def time_wakes(server: SoundServer, running: Running, runs: int, ahead_ms: float) -> dict[str, Any]:
    """Utterances, each to a speaker that is suspended where the player lets go of it."""
    wave = tone(2400, rate=VOICE_RATE)
    written, opened = [], []
    with server.capture(passive=True) as recorder:
        for generation in range(1, runs + 1):
            if running.configure.release_after_s:
                running.player.send(Expect(sound=False))
                server.wait_for_state(SINK, "suspended")
                running.listen(0.05)
            told = len(running.messages)
            if ahead_ms:
                running.player.send(Expect(sound=True))
                running.listen(ahead_ms / 1000)
            written.append(time.monotonic_ns())
            running.writer.write(generation, 0, wave, VOICE_RATE, last=True)
            running.wait(Ended, lambda e, g=generation: e.generation == g)
            opened += [m for m in running.messages[told:] if isinstance(m, Opened)]
            running.listen(0.2)
            progress(generation, runs)
    heard = [first_sound(recorder.result, ns) for ns in written]
    started = [m for m in running.messages if isinstance(m, Started)]
    figures: dict[str, Any] = {
        "monitor": spread([(h - w) / 1e6 for h, w in zip(heard, written, strict=True)]),
        "monitor_minus_stamp": spread(
            [(h - s.first_sound_ns) / 1e6 for h, s in zip(heard, started, strict=True)]
        ),
        "recorder_lost": recorder.result.lost,
    }
    if opened:
        begins = [ns - ahead_ms * 1e6 for ns in written]
        figures["reopening"] = spread(
            [(o.ns - b) / 1e6 for o, b in zip(opened, begins, strict=True)]
        )
    return figures


def cancel_to_silence(server: SoundServer, options: argparse.Namespace) -> dict[str, Any]:
    """From raising the fence to the last sample that is not zero."""
    running, _ = open_player(server, options.period_ms)
    wave = tone(48_000, rate=VOICE_RATE)
    cancelled = []
    with server.capture() as recorder:
        for generation in range(1, options.cancels + 1):
            running.writer.write(generation, 0, wave, VOICE_RATE)
            running.wait(Started, lambda s, g=generation: s.generation == g)
            running.listen(random.uniform(0.05, 0.25))
            cancelled.append(time.monotonic_ns())
            running.ring.fence = generation + 1
            running.wake()
            running.wait(Dropped, lambda d, g=generation: d.generation == g)
            running.listen(0.1)
            progress(generation, options.cancels)
    running.close()
    capture = recorder.result
    silent = []
    for ns in cancelled:
        begin = capture.frame_at(ns)
        after = capture.samples[begin : begin + 48_000 // 10]
        silent.append(capture.time_ns(begin + int(np.flatnonzero(after)[-1])))
    drops = [m for m in running.messages if isinstance(m, Dropped)]
    return {
        "monitor": spread([(s - c) / 1e6 for s, c in zip(silent, cancelled, strict=True)]),
        "stamp": spread([(d.silent_ns - c) / 1e6 for d, c in zip(drops, cancelled, strict=True)]),
        "ramp_ms": 5.0,
    }


def spin(core: int) -> None:
    os.sched_setaffinity(0, {core})
    while True:
        pass


def continuous(server: SoundServer, options: argparse.Namespace) -> dict[str, Any]:
    """Continuous sound at each period while one core is fully busy."""
    context = multiprocessing.get_context("spawn")
    busy = context.Process(target=spin, args=(0,), daemon=True)
    busy.start()
    figures = {}
    try:
        for period_ms in PERIODS_MS:
            figures[f"{period_ms:g}ms"] = play_on(server, period_ms, options.seconds)
    finally:
        busy.kill()
        busy.join()
    stable = [
        period_ms
        for period_ms in PERIODS_MS
        if not figures[f"{period_ms:g}ms"]["underruns"]
        and not figures[f"{period_ms:g}ms"]["silent_ms_at_monitor"]
    ]
    return {**figures, "lowest_stable_period_ms": min(stable, default=None)}


def play_on(server: SoundServer, period_ms: float, seconds: float) -> dict[str, Any]:
    running, opened = open_player(server, period_ms)
    piece = np.full(VOICE_RATE // 10, 0.25, np.float32)  # any hole in it shows
    pieces = int(seconds * 10)
    with server.capture() as recorder:
        running.writer.write(1, 0, piece, VOICE_RATE)
        for number in range(1, pieces + 1):
            while running.ring.used > AHEAD_BYTES:
                running.listen(0.05)
                if running.gone:
                    raise RuntimeError(f"the player has ended: {running.messages[-3:]}")
            last = number == pieces
            running.writer.write(1, number * len(piece), piece, VOICE_RATE, last=last)
            progress(number, pieces)
        running.wait(Ended)
        running.listen(0.2)
    running.close()
    capture = recorder.result
    loud = np.flatnonzero(np.abs(capture.samples) > 0.2)
    heard = capture.samples[loud[0] : loud[-1]]
    told = [m for m in running.messages if isinstance(m, Underrun)]
    return {
        "underruns": max([m.count for m in told], default=0),
        "silent_ms_at_monitor": round(float((np.abs(heard) < 0.2).sum()) / 48, 2),
        "seconds": round(len(heard) / 48_000, 2),
        "recorder_lost": capture.lost,
        "reported_latency_ms": round(opened.latency_ms, 2),
        "realtime": opened.realtime,
    }


def server_killed(server: SoundServer, options: argparse.Namespace) -> dict[str, Any]:
    """SIGKILL of PipeWire in mid-sentence, started again at once."""
    noticed, again = [], []
    for number in range(1, options.kills + 1):
        running, _ = open_player(server, options.period_ms)
        running.writer.write(1, 0, tone(10 * VOICE_RATE, rate=VOICE_RATE), VOICE_RATE)
        running.wait(Started)
        running.listen(random.uniform(0.2, 0.5))
        killed = time.monotonic_ns()
        server.kill()
        lost = running.wait(DeviceLost)
        server.start()
        up = time.monotonic_ns()
        told = len(running.messages)
        while not any(isinstance(m, Anchor) for m in running.messages[told:]):
            if running.gone:
                running.start()
            running.listen(0.05)
        back = next(m for m in running.messages[told:] if isinstance(m, Anchor))
        noticed.append((lost.ns - killed) / 1e6)
        again.append((back.dac_ns - up) / 1e6)
        running.close()
        progress(number, options.kills)
    return {"noticed": spread(noticed), "sound_after_server_is_back": spread(again)}


def progress(done: int, of: int) -> None:
    if sys.stderr.isatty() or done == of:
        print(f"\r  {done}/{of} ", end="" if done < of else "\n", file=sys.stderr, flush=True)


PARTS: dict[str, "Callable[[SoundServer, argparse.Namespace], dict[str, Any]]"] = {
    "idle": idle,
    "write_to_sound_ms": write_to_sound,
    "wake_to_sound_ms": wake_to_sound,
    "cancel_to_silence_ms": cancel_to_silence,
    "continuous": continuous,
    "server_killed_ms": server_killed,
}


if __name__ == "__main__":
    main()
