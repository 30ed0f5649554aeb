"""Measure the reference stream: what it costs the player, how early it comes, whether it is right.

The speaker is a null sink of PipeWire in real time, and its monitor is what counts.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.audio.running import Running
from tests.audio.subscriber import Subscriber
from tests.sound_server import SoundServer
from utterd.audio.messages import Alive, Anchor, Configure, Ended, Opened

VOICE_RATE = 24_000
AHEAD_BYTES = 4 * VOICE_RATE * 300 // 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each case (default 20)")
    parser.add_argument("--runs", type=int, default=30, help="utterances compared (default 30)")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    options = parser.parse_args()
    server = SoundServer()
    result: dict[str, Any] = {"cores": os.cpu_count(), "seconds": options.seconds}
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "reference.sock"
            load = os.getloadavg()[0]
            for sink in ("device", "null"):
                for sounds in (False, True):
                    for subscribed in (False, True):
                        name = f"{sink} {'sound' if sounds else 'silence'}"
                        name += ", subscribed" if subscribed else ""
                        configure = Configure(sink=sink, reference=str(path))
                        running = Running(configure, server.environment)
                        subscriber = Subscriber(path) if subscribed else None
                        result[name] = cost(running, options.seconds, subscriber, sounds=sounds)
                        say(f"{name}: {json.dumps(result[name])}")
            result["lag"] = lag(server, path, options.runs)
            say(f"lag: {json.dumps(result['lag'])}")
            result["load_average"] = [round(load, 2), round(os.getloadavg()[0], 2)]
    finally:
        server.close()
    if options.json:
        print(json.dumps(result))


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def cost(
    running: Running, seconds: float, subscriber: Subscriber | None, *, sounds: bool
) -> dict[str, Any]:
    """CPU and memory of a player over some time, and how early a subscriber has its samples."""
    running.wait(Opened)
    piece = np.full(VOICE_RATE // 10, 0.25, np.float32)
    early: list[float] = []
    position, taken = 0, 0
    before, begin = cpu_seconds(running.player.pid), time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        while sounds and running.ring.used < AHEAD_BYTES:
            running.writer.write(1, position, piece, VOICE_RATE)
            position += len(piece)
        if subscriber is None:
            running.listen(min(0.1, seconds - passed))
            continue
        running.listen(0.0)
        subscriber.take(0.02)
        now_ns = time.monotonic_ns()
        if len(subscriber.headers) > taken:
            taken = len(subscriber.headers)
            early.append((subscriber.headers[-1].dac_ns - now_ns) / 1e6)
    used = cpu_seconds(running.player.pid) - before
    running.listen(1.2)
    alive = [m for m in running.messages if isinstance(m, Alive)][-1]
    figures = {
        "cpu_percent": round(100 * used / passed, 2),
        "rss_mb": round(alive.rss_bytes / 1e6, 1),
        "frames_copied": alive.reference_frames,
        "frames_dropped": alive.reference_dropped,
        "underruns": alive.underruns,
    }
    if subscriber is not None:
        subscriber.close()
        figures["messages"] = taken
        figures["gaps"] = sum(h.gap > 0 for h in subscriber.headers)
        figures["before_it_sounds_ms"] = spread(early)
    running.close()
    return figures


def lag(server: SoundServer, path: Path, runs: int) -> dict[str, Any]:
    """From the stamp in the stream to the monitor, by cross-correlation over 200 ms of noise."""
    running = Running(Configure(reference=str(path)), server.environment)
    running.wait(Opened)
    subscriber = Subscriber(path)
    subscriber.wait()
    noise = np.random.default_rng(1).uniform(-0.3, 0.3, VOICE_RATE // 4).astype(np.float32)
    with server.capture() as recorder:
        running.listen(0.2)
        for generation in range(1, runs + 1):
            running.writer.write(generation, 0, noise, VOICE_RATE, last=True)
            ended = running.wait(Ended, lambda e, g=generation: e.generation == g)
            running.listen(0.15)
            subscriber.take()
        subscriber.wait(lambda h: h.dac_ns > ended.dac_ns)
    running.close()
    subscriber.close()
    capture, times = recorder.result, [h.dac_ns for h in subscriber.headers]
    lags = []
    for anchor in [m for m in running.messages if isinstance(m, Anchor) and m.position == 0]:
        first = int(np.searchsorted(times, anchor.dac_ns, side="right")) - 1
        skip = round((anchor.dac_ns - times[first]) * 48 / 1e6)
        piece = np.concatenate(subscriber.samples[first : first + 22])[skip : skip + 9600]
        at = capture.frame_at(anchor.dac_ns) - 2400
        match = np.correlate(capture.samples[at : at + len(piece) + 4800], piece, "valid")
        lags.append((capture.time_ns(at + int(np.argmax(match))) - anchor.dac_ns) / 1e6)
    return spread(lags) | {"deviation": round(statistics.pstdev(lags), 3)}


def cpu_seconds(pid: int) -> float:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((t / "schedstat").read_text().split()[0]) for t in threads) / 1e9


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "runs": len(ordered),
        "p05": round(ordered[len(ordered) // 20], 3),
        "median": round(statistics.median(ordered), 3),
        "max": round(ordered[-1], 3),
    }


if __name__ == "__main__":
    main()
