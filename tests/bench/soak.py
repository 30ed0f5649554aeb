"""Months of a kiosk in an hour: short requests of all kinds through the null sink, sped up.

Afterwards no process may have grown by 5 MB since the first 1,000 requests, hold more descriptors
or threads, or have been replaced; every request must have had exactly one terminal event, in order.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.daemon_process import DaemonProcess
from tests.kiosk import Kiosk
from tests.measuring import Holding, holdings, leaks

WARM = 1000
"""Requests after which nothing may grow any more."""
MOST_GROWTH_MB = 5.0
SETTLE_S = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=120_000)
    parser.add_argument("--every", type=int, default=2000, help="requests between two samples")
    parser.add_argument("--voice", default="joe-us")
    parser.add_argument("--voices-dir", type=Path, required=True, help="data folder with the voice")
    parser.add_argument("--speed", type=float, default=200.0, help="of the null sink")
    parser.add_argument("--rate", type=float, default=1.0, help="of speech")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    environment = {
        "UTTERD_AUDIO_SINK": "null",
        "UTTERD_AUDIO_SPEED": str(options.speed),
        "UTTERD_AUDIO_PERIOD_MS": str(min(200.0, max(10.0, options.speed))),
        "UTTERD_LOG_LEVEL": "warning",
    }
    with tempfile.TemporaryDirectory(prefix="utterd-soak.") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "voices").symlink_to(options.voices_dir.absolute() / "voices")
        daemon = DaemonProcess(
            Path(folder) / "run", data, "--voice", options.voice, environment=environment
        )
        try:
            result = soak(daemon, options)
        finally:
            if daemon.process.poll() is None:
                daemon.stop()
        log = daemon.log.read_text(encoding="utf-8").splitlines()
    result["log"] = log[:20]
    print(json.dumps(result, ensure_ascii=False) if options.json else describe(result))
    sys.exit(1 if result["faults"] else 0)


def soak(daemon: DaemonProcess, options: argparse.Namespace) -> dict[str, Any]:
    """Ask and measure."""
    with daemon.client() as client:
        (voice,) = [v for v in client.call("voices")["voices"] if v["name"] == options.voice]
    kiosk = Kiosk(daemon, options.requests, voice["languages"], options.seed, options.rate)
    begin = time.monotonic()
    samples = [(0, begin, holdings(daemon))]
    due = [WARM, *range(options.every, options.requests, options.every)]
    while kiosk.asked < options.requests:
        kiosk.ask()
        if due and kiosk.asked >= due[0]:
            due.pop(0)
            samples.append((kiosk.asked, time.monotonic(), holdings(daemon)))
            show(samples, options.requests)
    kiosk.settle(0)
    end = time.monotonic()
    time.sleep(SETTLE_S)
    samples.append((kiosk.asked, end, holdings(daemon)))
    kiosk.close()
    ledger = kiosk.ledger
    before, _, warm = samples[1 if len(samples) > 2 else 0]
    last, cold = samples[-1][2], kiosk.asked - before
    growth = {name: (last[name].rss_bytes - warm[name].rss_bytes) / 1e6 for name in warm}
    faults = ledger.faults + leaks(warm, last)
    faults += [f"r{n} has {ledger.ends[n]} ends" for n in range(kiosk.asked) if ledger.ends[n] != 1]
    faults += [f"the {k} grew by {v:.1f} MB" for k, v in growth.items() if v >= MOST_GROWTH_MB]
    return {
        "voice": options.voice,
        "speed": options.speed,
        "rate": options.rate,
        "requests": kiosk.asked,
        "seconds": round(end - begin, 1),
        "per_second": round(kiosk.asked / (end - begin), 1),
        "load": round(os.getloadavg()[0], 2),
        "events": dict(ledger.kinds),
        "refused": dict(kiosk.refused),
        "cpu_ms_a_request": {
            name: round((last[name].cpu_s - warm[name].cpu_s) * 1000 / max(1, cold), 2)
            for name in warm
        },
        "growth_mb": {name: round(value, 2) for name, value in growth.items()},
        "curve": [row(*sample, begin) for sample in samples],
        "faults": faults[:100],
    }


def row(asked: int, at: float, held: dict[str, Holding], begin: float) -> dict[str, Any]:
    """One sample."""
    return {
        "requests": asked,
        "seconds": round(at - begin, 1),
        **{f"{name}_mb": round(one.rss_bytes / 1e6, 2) for name, one in held.items()},
        "descriptors": {name: one.descriptors for name, one in held.items()},
        "threads": {name: one.threads for name, one in held.items()},
    }


def show(samples: list[tuple[int, float, dict[str, Holding]]], requests: int) -> None:
    """Where it stands."""
    (before, since, _), (asked, at, held) = samples[-2:]
    sizes = ", ".join(f"{name} {one.rss_bytes / 1e6:.1f} MB" for name, one in held.items())
    rate = (asked - before) / (at - since)
    print(f"{asked} of {requests}: {rate:.0f}/s, {sizes}", file=sys.stderr, flush=True)


def describe(result: dict[str, Any]) -> str:
    """For people."""
    curve = [
        "  ".join(f"{key} {value}" for key, value in sample.items() if not isinstance(value, dict))
        for sample in result["curve"]
    ]
    rest = [f"{key}: {value}" for key, value in result.items() if key != "curve"]
    return "\n".join([*curve, *rest])


if __name__ == "__main__":
    main()
