"""What a durable utterance costs: one commit to disk when it is accepted, one a clause, one at
its end."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from utterd.daemon.bench import statistics_of
from utterd.daemon.journal import Journal
from utterd.daemon.protocol import Speak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--dir", type=Path, help="on the disk to measure; default: a temporary one")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        journal = Journal(Path(folder) / "journal.sqlite")
        command = Speak(text="今天下午三点，在国贸中心有一个会议。", durable=True)
        steps: dict[str, Callable[[str], None]] = {
            "add": lambda id_: journal.add("bench", id_, command, 0),
            "progress": lambda id_: journal.progress("bench", id_, 8),
            "remove": lambda id_: journal.remove("bench", id_),
        }
        result: dict[str, object] = {"load": os.getloadavg()[0], "dir": folder}
        for name, step in steps.items():
            took = []
            for number in range(options.rounds):
                begin = time.perf_counter_ns()
                step(str(number))
                took.append((time.perf_counter_ns() - begin) / 1e6)
                print(f"\r{name} {number + 1} of {options.rounds}  ", end="", file=sys.stderr)
            result[name] = statistics_of(took)
        print(file=sys.stderr)
        journal.close()
    if options.json:
        print(json.dumps(result))
    else:
        for name, row in result.items():
            print(f"{name}: {row}")


if __name__ == "__main__":
    main()
