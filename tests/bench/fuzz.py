"""Throws a million mutated messages at the command socket; the daemon must answer every one,
neither crash nor hang nor grow, and speak afterwards.

Messages are real commands with bytes flipped, cut, repeated, swapped for extremes, in JSON and
msgpack, from several connections at once.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import zmq
from commands import COMMANDS, EXTREMES
from latency import start

from utterd.daemon.client import Client
from utterd.daemon.config import Config, Paths, default_data_dir

CONNECTIONS = 8
WINDOW = 64
"""Unanswered messages of one connection."""


def mutate(dice: random.Random) -> bytes:
    """One message; every fifth is left as it is, so that the daemon has something to do."""
    command = dict(dice.choice(COMMANDS))
    is_sound = dice.random() < 0.2
    if not is_sound and dice.random() < 0.5:
        command[dice.choice([*command, "x" * dice.randrange(1, 9)])] = dice.choice(EXTREMES)
    packed = dice.random() < 0.5
    frame = bytearray(
        msgspec.msgpack.encode(command)
        if packed
        else json.dumps(command, ensure_ascii=dice.random() < 0.5).encode()
    )
    for _ in range(0 if is_sound else dice.choice((0, 0, 1, 1, 2, 8))):
        at = dice.randrange(len(frame)) if frame else 0
        match dice.randrange(4):
            case 0 if frame:
                frame[at] = dice.randrange(256)
            case 1:
                del frame[at : at + dice.randrange(1, 20)]
            case 2:
                frame[at:at] = dice.randbytes(dice.randrange(1, 9))
            case _:
                frame[at:at] = frame[at : at + 16]
    return bytes(frame)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, default=default_data_dir(), help="has the voices")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="utterd-fuzz.") as folder:
        config = Config(paths=Paths(run=f"{folder}/run", data=str(options.data_dir)))
        daemon = start(config, None, cached=True)
        try:
            result = fuzz(config, options.messages, options.seed)
            result["alive"] = daemon.poll() is None
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
    print(json.dumps(result) if options.json else "\n".join(f"{k}: {v}" for k, v in result.items()))
    is_well = result["alive"] and result["speaks_afterwards"] and not result["faults"]
    sys.exit(0 if is_well else 1)


def fuzz(config: Config, messages: int, seed: int) -> dict[str, Any]:
    """Send them and count the answers.

    Raises:
        TimeoutError: no answer for 30 s: the daemon hangs.
    """
    dice = random.Random(seed)
    context = zmq.Context()
    sockets = [context.socket(zmq.DEALER) for _ in range(CONNECTIONS)]
    for socket in sockets:
        socket.connect(config.control)
    unanswered = dict.fromkeys(sockets, 0)
    codes: dict[str, int] = {}
    faults: set[str] = set()
    sent = answered = 0
    begin = time.monotonic()
    before = rss(config)
    while answered < messages:
        for socket in sockets:
            while sent < messages and unanswered[socket] < WINDOW:
                socket.send(mutate(dice))
                unanswered[socket] += 1
                sent += 1
        poller = zmq.Poller()
        for socket in sockets:
            poller.register(socket, zmq.POLLIN)
        ready = poller.poll(30_000)
        if not ready:
            raise TimeoutError(f"{sent - answered} messages have no answer")
        for socket, _ in ready:
            while socket.poll(0):
                count(socket.recv_multipart()[0], codes, faults)
                unanswered[socket] -= 1
                answered += 1
        print(f"\r{answered} of {messages}", end="", file=sys.stderr)
    print(file=sys.stderr)
    context.destroy(linger=0)
    return {
        "messages": answered,
        "seconds": round(time.monotonic() - begin, 1),
        "answers": dict(sorted(codes.items())),
        "faults": sorted(faults),
        "daemon_rss_growth_mb": round((rss(config) - before) / 1e6, 1),
        "load": os.getloadavg()[0],
        "speaks_afterwards": speaks(config),
    }


def count(frame: bytes, codes: dict[str, int], faults: set[str]) -> None:
    """Count an answer by its code, and keep what faults say; anything but a reply raises."""
    reply = json.loads(frame) if frame[:1] == b"{" else msgspec.msgpack.decode(frame)
    code = "ok" if reply["ok"] else reply["error"]["code"]
    codes[code] = codes.get(code, 0) + 1
    if code == "internal":
        faults.add(reply["error"]["message"])


def rss(config: Config) -> int:
    """Of the daemon, in bytes."""
    with Client(config) as client:
        return int(client.call("health", timeout_s=30)["daemon"]["rss_bytes"])


def speaks(config: Config) -> bool:
    """Whether the next utterance is heard to its end."""
    with Client(config, "afterwards") as client:
        client.subscribe("ended")
        client.call("cancel", all=True, timeout_s=30)
        client.call("resume", timeout_s=30)
        client.call("speak", text="还在。", id="afterwards", timeout_s=30)
        return any(event["id"] == "afterwards" for event in client.events(timeout_s=60))


if __name__ == "__main__":
    main()
