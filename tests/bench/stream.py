"""Token-streamed speech with every core loaded: does it ever stop while there is text to say?

An assistant streams answers: tokens of random size at random intervals go through `speak` with
`more`, `append` and `finish`, faster than they can be said, while one process a core computes. All
of it sounds through a real sound server. A gap is a silence at the speaker's monitor longer than
--gap-ms while the daemon had at least --ahead characters that were not heard yet; an underrun is
what the player counts, the gaps left out in which the text itself was late. None of either should
be. A machine whose processors are taken away (a virtual one on a busy host) can't keep time, so a
probe at real-time priority 95 sleeps for a millisecond on each core, again and again, and each
underrun is told with the latest that it was woken in the 1.5 s before.
"""

import argparse
import bisect
import json
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.hearing import silences
from tests.bench.latency import UNCACHED
from tests.daemon_process import DaemonProcess
from tests.sound_server import Capture, SoundServer
from utterd.daemon.bench import statistics_of
from utterd.daemon.client import Client
from utterd.daemon.events import TERMINAL

SENTENCES = {
    "en": (
        "The nearest station is about three miles away, just behind the old bridge.",
        "You can take the next exit, or stay on this road for another ten minutes.",
        "It costs 2.50 an hour, and the first half hour is free.",
        "By the way, there will be some rain at 17:30, so please drive carefully.",
        "Shall I call the restaurant, and tell them that we are going to be late?",
    ),
    "zh": (
        "前方三公里有一个加油站，就在老桥的后面。",
        "您可以走下一个出口，也可以沿着这条路再开十分钟。",
        "停车费每小时2.5元，前半个小时免费。",
        "顺便说一下，今天17:30会下雨，请小心驾驶。",
        "需要我给餐厅打电话，告诉他们我们会晚到吗？",
    ),
}
CHARACTERS_A_TOKEN = {"en": (1, 9), "zh": (1, 3)}
SENTENCES_AN_ANSWER = (3, 8)

Stalls = SimpleQueue[tuple[int, int]]


@dataclass
class Answer:
    """One utterance: how much of it was sent and heard by when."""

    id: str
    sent: list[tuple[int, int]] = field(default_factory=list)
    """Times in CLOCK_MONOTONIC ns, and characters sent by then."""
    heard: list[tuple[int, int]] = field(default_factory=list)
    """Times at the DAC, and characters whose sound has begun by then."""
    ended_ns: int = 0

    def ahead(self, ns: int) -> int:
        """Characters that had been sent and not yet begun to sound at a time; 0 before its start.

        A piece of text that is held back for the end of its clause does not count: what was sent
        in the second before is taken to be one.
        """
        if not self.heard or ns < self.heard[0][0] or (self.ended_ns and ns >= self.ended_ns):
            return 0
        return _known(self.sent, ns - 1_000_000_000) - _known(self.heard, ns)


def _known(steps: list[tuple[int, int]], ns: int) -> int:
    at = bisect.bisect_right(steps, (ns, sys.maxsize)) - 1
    return steps[at][1] if at >= 0 else 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--voice", default="joe-us")
    parser.add_argument("--language", choices=sorted(SENTENCES), default="en")
    parser.add_argument("--tokens-a-second", type=float, default=20.0)
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="processes that compute")
    parser.add_argument("--gap-ms", type=float, default=700.0, help="longer than any pause")
    parser.add_argument("--ahead", type=int, default=60, help="characters; more than a clause")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, required=True, help="data folder with the voice")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    server = SoundServer()
    with tempfile.TemporaryDirectory(prefix="utterd-stream.") as folder:
        run_dir = Path(folder) / "run"
        daemon = DaemonProcess(
            run_dir,
            options.data_dir,
            *("--voice", options.voice),
            environment=server.environment | UNCACHED,
        )
        stalls: Stalls = multiprocessing.SimpleQueue()
        busy = [multiprocessing.Process(target=_compute, daemon=True) for _ in range(options.busy)]
        busy += [
            multiprocessing.Process(target=_probe, args=(core, stalls), daemon=True)
            for core in range(os.cpu_count() or 1)
        ]
        try:
            for process in busy:
                process.start()
            result = measure(server, daemon, stalls, options)
        finally:
            for process in busy:
                process.kill()
            daemon.stop()
            server.close()
    print(json.dumps(result) if options.json else "\n".join(f"{k}: {v}" for k, v in result.items()))
    sys.exit(1 if result["gaps"] or result["underruns"] else 0)


def _compute() -> None:
    while True:
        sum(number * number for number in range(10_000))


def _probe(core: int, stalls: Stalls) -> None:
    """Report when this core was away for more than 2 ms: until when, and how long, in ns."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(95))
    due = time.monotonic_ns()
    while True:
        due = max(due + 1_000_000, time.monotonic_ns())
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        now = time.monotonic_ns()
        if now - due > 2_000_000:
            stalls.put((now, now - due))


def measure(
    server: SoundServer, daemon: DaemonProcess, stalls: Stalls, options: argparse.Namespace
) -> dict[str, Any]:
    """Stream answers for so long, then look at what was heard."""
    answers: dict[str, Answer] = {}
    underruns: list[int] = []
    stalled: list[tuple[int, int]] = []
    over = threading.Event()
    with daemon.client("listener") as listening, daemon.client("assistant") as client:
        listening.subscribe()
        client.call("warmup", timeout_s=60.0, voice=options.voice)
        latency_ms = client.call("health")["device"]["latency_ms"]
        listener = threading.Thread(target=_listen, args=(listening, answers, over))
        listener.start()
        watch = threading.Thread(target=_watch, args=(daemon, underruns, stalls, stalled, over))
        watch.start()
        psutil.cpu_percent()  # from here on
        with server.capture() as recorder:
            dice = random.Random(options.seed)
            begin_ns = time.monotonic_ns()
            while (elapsed_s := (time.monotonic_ns() - begin_ns) / 1e9) < options.minutes * 60:
                answer = Answer(f"a{len(answers)}")
                answers[answer.id] = answer
                _stream(client, answer, options, dice)
                while not answer.ended_ns:  # the next question comes when the answer was heard
                    time.sleep(0.02)
                print(
                    f"\r{elapsed_s:.0f} of {options.minutes * 60:.0f} s   ", end="", file=sys.stderr
                )
        busy_percent = psutil.cpu_percent()
        over.set()
        listener.join()
        watch.join()
    print(file=sys.stderr)
    capture = recorder.result
    spoken = _silences(capture, answers, options.ahead)
    gaps = [(ms, id_) for ms, id_ in spoken if ms > options.gap_ms]
    return {
        "minutes": options.minutes,
        "voice": options.voice,
        "answers": len(answers),
        "characters": sum(answer.sent[-1][1] for answer in answers.values()),
        "underruns": [_explained(ns, stalled) for ns in underruns],
        "stalls_ms": statistics_of([ns / 1e6 for _, ns in stalled] or [0.0]),
        "stalls_over_5_ms": sum(ns > 5_000_000 for _, ns in stalled),
        "device_latency_ms": latency_ms,
        "gaps": gaps,
        "silences_with_text_ahead_ms": statistics_of([ms for ms, _ in spoken] or [0.0]),
        "recorder_lost_cycles": capture.lost,
        "busy_processes": options.busy,
        "processors_busy_percent": busy_percent,
        "load": round(os.getloadavg()[0], 2),
    }


def _stream(
    client: Client, answer: Answer, options: argparse.Namespace, dice: random.Random
) -> None:
    """One answer, token by token."""
    sentences = SENTENCES[options.language]
    glue = " " if options.language == "en" else ""
    text = glue.join(dice.choice(sentences) for _ in range(dice.randint(*SENTENCES_AN_ANSWER)))
    low, high = CHARACTERS_A_TOKEN[options.language]
    done = 0
    while done < len(text):
        token = text[done : done + dice.randint(low, high)]
        if done:
            client.call("append", timeout_s=60.0, id=answer.id, text=token)
        else:
            client.call(
                "speak",
                timeout_s=60.0,
                id=answer.id,
                text=token,
                more=True,
                marks=True,
                voice=options.voice,
            )
        done += len(token)
        answer.sent.append((time.monotonic_ns(), done))
        time.sleep(dice.expovariate(options.tokens_a_second))
    client.call("finish", timeout_s=60.0, id=answer.id)


def _watch(
    daemon: DaemonProcess,
    underruns: list[int],
    stalls: Stalls,
    stalled: list[tuple[int, int]],
    over: threading.Event,
) -> None:
    """Note when the player counts underruns, CLOCK_MONOTONIC ns, and what the probes say."""
    with daemon.client("watch") as client:
        counted = client.call("health")["device"]["underruns"]
        while not over.wait(0.1):
            before, counted = counted, client.call("health", timeout_s=60.0)["device"]["underruns"]
            underruns += [time.monotonic_ns()] * (counted - before)
            while not stalls.empty():
                stalled.append(stalls.get())


def _explained(ns: int, stalled: list[tuple[int, int]]) -> dict[str, float]:
    """When an underrun was seen, and what a probe missed in the 1.5 s before."""
    before = [late for at, late in stalled if ns - 1_500_000_000 < at <= ns]
    return {
        "monotonic_s": round(ns / 1e9, 3),
        "longest_stall_ms": round(max(before, default=0) / 1e6, 1),
        "stalled_ms": round(sum(before) / 1e6, 1),
    }


def _listen(client: Client, answers: dict[str, Answer], over: threading.Event) -> None:
    while not over.is_set():
        for event in client.events(timeout_s=0.2):
            answer = answers.get(event["id"])
            if answer is None:
                continue
            if event["event"] == "word":
                answer.heard.append((event["dac_ns"], event["end"]))
            elif event["event"] in TERMINAL:
                assert event["event"] == "ended", event
                answer.ended_ns = event["dac_ns"]


def _silences(capture: Capture, answers: dict[str, Answer], ahead: int) -> list[tuple[float, str]]:
    """Silences of more than 50 ms that began while an answer had text ahead, in ms."""
    found = []
    for answer in answers.values():
        assert answer.heard, f"no word of {answer.id} was told"
        for begin, end in silences(capture, answer.heard[0][0], answer.ended_ns).tolist():
            ms = (end - begin) / capture.rate * 1000
            if ms > 50 and answer.ahead(capture.time_ns(begin)) >= ahead:
                found.append((round(ms, 1), answer.id))
    return found


if __name__ == "__main__":
    main()
