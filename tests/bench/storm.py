"""Random operations from eight clients at once; then what must always hold is checked:

every accepted utterance has exactly one terminal event, those of equal priority of one client are
heard in the order in which they were asked for, nothing sounds after the reply to its cancel, and
`synthesize` gives the same samples of a text whatever it was made beside.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from commands import ON_INTERRUPT, PRIORITIES, QUEUES, TEXTS
from latency import start

from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config, Paths, default_data_dir

TERMINAL = frozenset({"ended", "cancelled", "failed", "dropped"})
CLIENTS = 8


class Caller(threading.Thread):
    """One client with dice."""

    def __init__(
        self, config: Config, number: int, operations: int, pause_ms: float, seed: int
    ) -> None:
        super().__init__()
        self.dice = random.Random(f"{seed}/{number}")
        self.name_ = f"client{number}"
        self.config = config
        self.operations = operations
        self.pause_ms = pause_ms
        self.accepted: list[tuple[str, str]] = []
        """Ids and priorities, in order."""
        self.open: set[str] = set()
        """Those that came in pieces: with nothing to say yet, they are passed by others."""
        self.cancelled_at: dict[str, int] = {}
        """When the reply to the cancel of an id came, CLOCK_MONOTONIC ns."""
        self.samples: defaultdict[str, set[bytes]] = defaultdict(set)
        """What a text was made of."""
        self.refused: Counter[str] = Counter()
        self.done = 0

    def run(self) -> None:
        with Client(self.config, self.name_) as client:
            while self.done < self.operations:
                try:
                    self.operate(client)
                except DaemonError as error:
                    self.refused[error.code] += 1
                self.done += 1
                time.sleep(self.dice.expovariate(1000 / self.pause_ms))

    def operate(self, client: Client) -> None:
        """One random command."""
        dice = self.dice
        kind = dice.choices(
            (
                "speak",
                "stream",
                "append",
                "finish",
                "cancel",
                "cancel mine",
                "stop",
                "pause",
                "skip",
                "synthesize",
            ),
            (40, 8, 15, 6, 12, 2, 4, 1, 3, 10),
        )[0]
        known = self.accepted[-1][0] if self.accepted else "none"
        if kind in ("speak", "stream"):
            id_ = f"{self.name_}-{self.done}"
            priority = dice.choices(PRIORITIES, (1, 10, 3, 2, 2))[0]
            client.call(
                "speak",
                timeout_s=60,
                text=dice.choice(TEXTS),
                id=id_,
                priority=priority,
                more=kind == "stream",
                queue=dice.choices(QUEUES, (10, 1, 1))[0],
                ttl_ms=dice.choice((0, 0, 50, 2000)),
                interruptible=dice.random() < 0.9,
                on_interrupt=dice.choice(ON_INTERRUPT),
            )
            self.accepted.append((id_, priority))
            if kind == "stream":
                self.open.add(id_)
        elif kind == "append":
            client.call("append", timeout_s=60, id=known, text=dice.choice(TEXTS))
        elif kind == "finish":
            client.call("finish", timeout_s=60, id=known)
        elif kind == "cancel":
            id_ = dice.choice(self.accepted)[0] if self.accepted else "none"
            client.call("cancel", timeout_s=60, id=id_)
            self.cancelled_at[id_] = time.monotonic_ns()
        elif kind == "cancel mine":
            client.call("cancel", timeout_s=60)
        elif kind == "synthesize":
            text = dice.choice(TEXTS)
            _, samples = client.call_with_samples("synthesize", timeout_s=60, text=text)
            self.samples[text].add(samples)
        elif kind == "pause":
            client.call("pause", timeout_s=60)
            client.call("resume", timeout_s=60)
        else:
            client.call(kind, timeout_s=60)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=10_000, help="of all clients together")
    parser.add_argument(
        "--pause-ms", type=float, default=250.0, help="between a client's operations, mean"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, default=default_data_dir(), help="has the voices")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="utterd-storm.") as folder:
        config = Config(paths=Paths(run=f"{folder}/run", data=str(options.data_dir)))
        daemon = start(config, None, cached=True)
        try:
            result = storm(config, options.operations, options.pause_ms, options.seed)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
    print(json.dumps(result) if options.json else "\n".join(f"{k}: {v}" for k, v in result.items()))
    sys.exit(1 if result["faults"] else 0)


def storm(config: Config, operations: int, pause_ms: float, seed: int) -> dict[str, Any]:
    """Let it rage, wait until all is silent, and look at what happened."""
    begin = time.monotonic()
    events: list[dict[str, Any]] = []
    over = threading.Event()

    def listen(client: Client) -> None:
        while not over.is_set():
            events.extend(client.events(timeout_s=0.5))

    with Client(config, "watch") as watcher, Client(config, "ask") as asking:
        watcher.subscribe()
        listener = threading.Thread(target=listen, args=(watcher,))
        listener.start()
        callers = [Caller(config, n, operations // CLIENTS, pause_ms, seed) for n in range(CLIENTS)]
        for caller in callers:
            caller.start()
        while any(caller.is_alive() for caller in callers):
            print(f"\r{sum(c.done for c in callers)} of {operations}", end="", file=sys.stderr)
            time.sleep(0.5)
        asking.call("resume", timeout_s=60)
        while (queue := asking.call("status", timeout_s=60))["speaking"] or queue["waiting"]:
            print(f"\r{len(queue['waiting'])} still wait     ", end="", file=sys.stderr)
            time.sleep(0.5)
        time.sleep(1.0)
        over.set()
        listener.join()
    print(file=sys.stderr)
    return {
        "operations": sum(caller.done for caller in callers),
        "accepted": sum(len(caller.accepted) for caller in callers),
        "refused": dict(sum((caller.refused for caller in callers), Counter())),
        "started": sum(event["event"] == "started" for event in events),
        "terminal": dict(Counter(e["event"] for e in events if e["event"] in TERMINAL)),
        "seconds": round(time.monotonic() - begin, 1),
        "load": os.getloadavg()[0],
        "faults": faults(callers, events),
    }


def faults(callers: list[Caller], events: list[dict[str, Any]]) -> list[str]:
    """What must not be."""
    found = []
    ends = Counter(e["id"] for e in events if e["event"] in TERMINAL)
    starts = {e["id"]: e["dac_ns"] for e in events if e["event"] == "started"}
    for caller in callers:
        for id_, _ in caller.accepted:
            if ends[id_] != 1:
                found.append(f"{id_} has {ends[id_]} terminal events")
        for priority in {priority for _, priority in caller.accepted}:
            mine = [i for i, p in caller.accepted if p == priority and i not in caller.open]
            heard = [i for i in mine if i in starts]
            for one, other in pairwise(heard):
                if starts[one] > starts[other]:
                    told = [e for e in events if e["id"] in {one, other}]
                    found.append(f"{one} of {priority} was heard behind {other}: {told}")
        for id_, silent_ns in caller.cancelled_at.items():
            late = [e for e in events if e["id"] == id_ and e.get("dac_ns", 0) > silent_ns]
            if late:
                found.append(f"{id_} sounded after the reply to its cancel: {late}")
    made: defaultdict[str, set[bytes]] = defaultdict(set)
    for caller in callers:
        for text, samples in caller.samples.items():
            made[text] |= samples
    found += [f"{text!r} was made in {len(s)} ways" for text, s in made.items() if len(s) > 1]
    sequence = [event["sequence"] for event in events if event["sequence"]]
    if len(sequence) != sequence[-1] - sequence[0] + 1:
        found.append(f"{sequence[-1] - sequence[0] + 1 - len(sequence)} events were lost")
    return found


if __name__ == "__main__":
    main()
