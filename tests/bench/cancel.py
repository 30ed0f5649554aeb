"""Cancel to silence at the speaker's monitor, through the whole daemon, at random moments.

Starts a sound server of its own (PipeWire with a null sink, see tests/sound_server.py) and a
daemon, speaks, cancels at a random moment and looks in the recording when the last sample above
-50 dBFS left. What the device's own buffer holds nobody can take back. Just after the device took a
block these are its latency, as it reports it, and the block; and the sound server's own step, which
is how much later than its time at the DAC the first sample of each text is seen at the monitor.
"""

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from latency import start

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.hearing import AUDIBLE, first_sound_ns
from tests.sound_server import SoundServer
from utterd.daemon.bench import statistics_of
from utterd.daemon.client import Client
from utterd.daemon.config import Config, Paths, default_data_dir

EARLIEST_NS = 20_000_000
"""The monitor may be ahead of the reported time by so much; silence is before that."""
TEXT = "这是一段比较长的话，用来在任意时刻打断它。" * 4


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cancels", type=int, default=200)
    parser.add_argument("--voice", default="")
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, default=default_data_dir(), help="has the voices")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    server = SoundServer()
    os.environ.update(server.environment)
    try:
        with tempfile.TemporaryDirectory(prefix="utterd-cancel.") as folder:
            config = Config(paths=Paths(run=f"{folder}/run", data=str(options.data_dir)))
            daemon = start(config, "default")
            try:
                result = measure(server, config, options)
            finally:
                daemon.send_signal(signal.SIGTERM)
                daemon.wait()
    finally:
        server.close()
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"{options.cancels} cancels, device buffer {result['device_buffer_ms']} ms, "
        f"p99 {result['p99_above_device_ms']} ms above it, load {result['load']}"
    )
    print(f"{'ms':<36}{'median':>10}{'p95':>10}{'p99':>10}{'max':>10}")
    for name in ("cancel_to_silence", "silent_after_ms_reported", "sound_after_reply"):
        row = result[name]
        print(f"{name:<36}{row['median']:>10}{row['p95']:>10}{row['p99']:>10}{row['max']:>10}")


def measure(server: SoundServer, config: Config, options: argparse.Namespace) -> dict[str, object]:
    """Speak and cancel, and compare with what was recorded."""
    dice = random.Random(options.seed)
    moments, begins = [], []
    with server.capture() as recorder, Client(config, "cancel") as client:
        client.call("warmup", timeout_s=120, voice=options.voice)
        latency_ms = client.call("health")["device"]["latency_ms"]
        client.subscribe("started")
        for number in range(options.cancels):
            client.call("speak", text=options.text, id=f"c{number}", voice=options.voice)
            for event in client.events(timeout_s=60):
                if event["id"] == f"c{number}":
                    begins.append(event["dac_ns"])
                    break
            time.sleep(dice.uniform(0.0, 0.8))
            asked_ns = time.monotonic_ns()
            reply = client.call("cancel", id=f"c{number}")
            moments.append((asked_ns, time.monotonic_ns(), reply["silent_after_ms"]))
            time.sleep(0.15)
            print(f"\r{number + 1} of {options.cancels}", end="", file=sys.stderr)
    print(file=sys.stderr)
    capture = recorder.result
    silent, after, reported, later = [], [], [], []
    for dac_ns in begins:
        sound_ns = first_sound_ns(capture, dac_ns - EARLIEST_NS)
        later.append((sound_ns - dac_ns) / 1e6)
    device_ms = latency_ms + config.audio.period_ms + statistics.median(later)
    for asked_ns, replied_ns, silent_after_ms in moments:
        begin = capture.frame_at(asked_ns)
        window = np.abs(capture.samples[begin : begin + capture.rate // 7])
        loud = np.flatnonzero(window > AUDIBLE)
        last_ns = capture.time_ns(begin + int(loud[-1])) if len(loud) else asked_ns
        silent.append((last_ns - asked_ns) / 1e6)
        after.append(max(0.0, (last_ns - replied_ns) / 1e6))
        reported.append(silent_after_ms)
    return {
        "cancels": options.cancels,
        "device_latency_ms": latency_ms,
        "cancel_to_silence": statistics_of(silent),
        "monitor_behind_dac": statistics_of(later),
        "device_buffer_ms": round(device_ms, 1),
        "p99_above_device_ms": round(statistics_of(silent)["p99"] - device_ms, 1),
        "silent_after_ms_reported": statistics_of(reported),
        "sound_after_reply": statistics_of(after),
        "load": round(os.getloadavg()[0], 2),
    }


if __name__ == "__main__":
    main()
