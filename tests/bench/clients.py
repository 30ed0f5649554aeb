"""Many clients at once: how many `synthesize` requests a second, and how soon their first samples.

    python tests/bench/clients.py [--voice NAME] [--data-dir D] [--clients N] [--every S] [--json]

Starts a daemon of its own on the null sink. Every client asks for a sentence of 12 to 28
characters as a stream, reads all of it, and asks again `--every` seconds after it last asked, or at
once where that has passed: 50 clients every second offer 50 requests a second. `--together` lets
all clients ask (with `--every 0`: begin to ask) in the same moment, which is the hardest case; else
they are spread evenly. They do so for a second before what is measured.
No sentence is likely to come twice, and the cache is off unless `--cache` asks for it. First PCM is
measured by the client, from before its request was written to when the first samples were read.
"""

import argparse
import json
import math
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import psutil
import zmq

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.latency import start
from utterd.daemon.bench import statistics_of
from utterd.daemon.config import Config, Paths, default_data_dir

WHO = ("他", "我们", "张老师", "那个司机", "隔壁的王阿姨", "客服小姐", "导航", "天气预报", "我妹妹")
WHEN = ("昨天", "今天早上", "刚才", "下个星期", "周末", "过一会儿", "每天晚上", "两点半")
WHAT = (
    "说前面的路口有点堵车",
    "提醒大家记得带好雨伞",
    "把客厅的空调调到二十四度",
    "打算去图书馆还三本书",
    "问附近有没有充电的地方",
    "建议走高速再从南边出口下来",
    "买了两斤苹果和一箱牛奶",
)
END = ("", "你觉得呢", "真是太好了", "请注意安全", "别忘了")


def sentence(random_: random.Random) -> str:
    """Some 12 to 28 characters that are not likely to have been said."""
    while True:
        middle = "".join(random_.choice(part) for part in (WHO, WHEN, WHAT))
        text = f"{middle}{random_.choice(('', '，'))}{random_.choice(END)}".rstrip("，") + "。"
        if 12 <= len(text) <= 28:
            return text


class Tally:
    """What came of all requests."""

    def __init__(self) -> None:
        self.first_ms: list[float] = []
        self.whole_ms: list[float] = []
        self.audio_s = 0.0
        self.failures: Counter[str] = Counter()


class Client:
    """One that asks, reads all of the answer, and asks again."""

    def __init__(
        self, number: int, options: argparse.Namespace, control: str, *, seed: int
    ) -> None:
        self._options = options
        self._number = number
        self._random = random.Random(seed)
        self._asked = self._first = 0.0
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.connect(control)
        offset = 0.0 if options.together else (options.every or 1.0) * number / options.clients
        self.due = options.begin + offset
        self.waits = False
        """For an answer."""

    def ask(self) -> None:
        """Send a request."""
        command = {
            "command": "synthesize",
            "client": f"client-{self._number}",
            "text": sentence(self._random),
            "voice": self._options.voice,
            "stream": True,
        }
        self._asked, self._first, self.waits = time.monotonic(), 0.0, True
        self.socket.send(msgspec.json.encode(command))

    def read(self, tally: Tally) -> None:
        """Take what has come of the answer."""
        while self.waits:
            try:
                head, *samples = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            now = time.monotonic()
            reply = msgspec.json.decode(head)
            if not reply["ok"]:
                tally.failures[reply["error"]["code"]] += 1
                self._rest(now)
                return
            if samples and samples[0] and not self._first:
                self._first = now - self._asked
            if not reply["more"]:
                tally.audio_s += reply["samples"] / reply["sample_rate"]
                tally.first_ms.append(self._first * 1000)
                tally.whole_ms.append((now - self._asked) * 1000)
                self._rest(now)

    def _rest(self, now: float) -> None:
        self.waits = False
        self.due = max(self.due + self._options.every, now)


def measure(options: argparse.Namespace, control: str, seconds: float, seed: int) -> Tally:
    """Let all clients ask. One thread, as little as it can be: it takes from the same cores."""
    tally = Tally()
    options.begin = time.monotonic() + 0.2
    options.end = options.begin + seconds
    numbers = range(options.clients)
    clients = [Client(number, options, control, seed=1000 * seed + number) for number in numbers]
    by_socket = {client.socket: client for client in clients}
    poller = zmq.Poller()
    for client in clients:
        poller.register(client.socket, zmq.POLLIN)
    told = 0.0
    while True:
        now = time.monotonic()
        idle = [client for client in clients if not client.waits and client.due < options.end]
        for client in idle:
            if client.due <= now:
                client.ask()
        if not idle and not any(client.waits for client in clients):
            break
        soonest = min((client.due for client in idle if not client.waits), default=now + 0.25)
        for socket, _ in poller.poll(math.ceil(max(0.0, soonest - time.monotonic()) * 1000)):
            by_socket[socket].read(tally)
        if sys.stderr.isatty() and now - told > 0.25:
            told, done = now, len(tally.whole_ms)
            left = max(0.0, options.end - now)
            print(f"\r\033[K{done} answers, {left:.0f} s left", end="", file=sys.stderr)
    for client in clients:
        client.socket.close()
    return tally


def processor_s(pid: int) -> float:
    """Processor time of a process and its children so far."""
    process = psutil.Process(pid)
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--voice", default="", help="NAME or NAME/SPEAKER; else the default one")
    parser.add_argument("--data-dir", type=Path, default=default_data_dir(), help="has the voices")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--every", type=float, default=1.0, metavar="S", help="0: without a pause")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to ask")
    parser.add_argument("--together", action="store_true", help="all ask in the same moment")
    parser.add_argument("--cache", action="store_true", help="with the cache as configured")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.voice:
        os.environ["UTTERD_ENGINE_VOICE"] = options.voice
    with tempfile.TemporaryDirectory(prefix="utterd-bench.") as folder:
        config = Config(paths=Paths(run=f"{folder}/run", data=str(options.data_dir)))
        daemon = start(config, None, cached=options.cache)
        try:
            # The voice gets its threads when they are first needed.
            measure(options, config.control, 1.0, -options.seed)
            busy, load = processor_s(daemon.pid), os.getloadavg()
            tally = measure(options, config.control, options.seconds, options.seed)
            taken = time.monotonic() - options.begin
            busy = processor_s(daemon.pid) - busy
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
    answers = len(tally.whole_ms)
    result: dict[str, Any] = {
        "clients": options.clients,
        "offered_per_s": round(options.clients / options.every, 1) if options.every else None,
        "answers": answers,
        "answers_per_s": round(answers / taken, 2),
        "failures": dict(tally.failures),
        "first_pcm_ms": statistics_of(tally.first_ms or [0.0]),
        "whole_ms": statistics_of(tally.whole_ms or [0.0]),
        "speech_s_per_s": round(tally.audio_s / taken, 2),
        "processor_s_per_s_of_speech": round(busy / max(tally.audio_s, 1e-9), 5),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": load,
    }
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:<28} {value}")


if __name__ == "__main__":
    main()
