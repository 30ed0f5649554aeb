"""The stage table: how long a text takes from the socket to the DAC, for sentences and voices.

Starts a daemon of its own on the null sink (which keeps real time), or on a device, speaks every
sentence several times and prints median, p95 and p99 of every stage. See tests/bench/README.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from utterd.daemon import bench
from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config, Paths, default_data_dir


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--voice", action="append", help="NAME or NAME/SPEAKER; may be repeated")
    parser.add_argument("--data-dir", type=Path, default=default_data_dir(), help="has the voices")
    parser.add_argument("--device", help="play through this device instead of the null sink")
    parser.add_argument("--file", type=Path, help="sentences, one a line; else a list of ten")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sentences = bench.SENTENCES
    if options.file:
        sentences = tuple(filter(None, options.file.read_text(encoding="utf-8").splitlines()))
    with tempfile.TemporaryDirectory(prefix="utterd-bench.") as folder:
        config = Config(paths=Paths(run=f"{folder}/run", data=str(options.data_dir)))
        daemon = start(config, options.device)
        try:
            result = bench.measure(config, sentences, options.voice or [""], options.rounds)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        bench.print_tables(result)


UNCACHED = {"UTTERD_CACHE_MEMORY_MB": "0", "UTTERD_CACHE_DISK_MB": "0"}
"""For daemons that say the same again and again, and are measured as if it were new."""


def start(config: Config, device: str | None, *, cached: bool = False) -> "subprocess.Popen[bytes]":
    """Run a daemon, with the cache as configured or none, and wait until its voice is warm."""
    sink = (
        {"UTTERD_AUDIO_SINK": "device", "UTTERD_AUDIO_DEVICE": device}
        if device
        else {"UTTERD_AUDIO_SINK": "null"}
    )
    environment = os.environ | sink | ({} if cached else UNCACHED)
    command = ["setpriv", "--pdeathsig", "TERM"]  # it ends with the measurement, however that ends
    command += [sys.executable, "-m", "utterd.daemon.cli", "serve", "--log-level", "warning"]
    command += ["--run-dir", str(config.run_dir), "--data-dir", str(config.data_dir)]
    daemon = subprocess.Popen(command, env=environment, cwd=config.run_dir.parent)
    while daemon.poll() is None:
        with Client(config) as client:
            try:
                client.call("ping", timeout_s=0.5)
                client.call("warmup", timeout_s=300)
            except DaemonError:
                time.sleep(0.1)
            else:
                return daemon
    sys.exit("the daemon did not start")


if __name__ == "__main__":
    main()
