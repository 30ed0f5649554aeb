"""`utterd bench`: how long each stage of a spoken sentence takes, through a running daemon."""

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from utterd.daemon.client import Client
from utterd.daemon.config import Config, ConfigError
from utterd.daemon.events import TERMINAL

SENTENCES = (
    "好的",
    "导航到最近的加油站",
    "前方三百米右转",
    "空调已经调到二十四度",
    "您有一条新消息,来自张伟",
    "今天下午三点,在国贸中心有一个会议",
    "正在为您播放周杰伦的晴天,祝您旅途愉快",
    "当前电量还剩百分之三十五,预计可以行驶一百二十公里",
    "Turn left at the next intersection.",
    "请打开 CarPlay,然后连接我的 iPhone",
)
"""Short and long, Chinese, English and mixed."""


def bench(options: argparse.Namespace, config: Config) -> int:
    """Speak sentences one by one and print the stage table."""
    sentences = SENTENCES
    if options.file:
        sentences = tuple(filter(str.strip, options.file.read_text(encoding="utf-8").splitlines()))
        if not sentences:
            raise ConfigError(f"{options.file}: no sentence in it; write one a line")
    result = measure(config, sentences, options.voice or [""], options.rounds)
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        print_tables(result)
    return 0


def measure(
    config: Config, sentences: Sequence[str], voices: Sequence[str], rounds: int
) -> dict[str, Any]:
    """Speak every sentence `rounds` times with every voice.

    Returns:
        Machine, load, how many segments came from the cache and so tell nothing of new text, and
        for each voice the statistics of every stage in ms.
    """
    result: dict[str, Any] = {
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "sentences": len(sentences),
        "rounds": rounds,
        "voices": {},
    }
    with Client(config, name=f"bench-{os.getpid()}") as client:
        client.subscribe()
        health = client.call("health")
        result["device"] = health["device"]
        cached_before = _from_cache(client)
        for voice in voices:
            client.call("warmup", timeout_s=120.0, voice=voice)
            result["voices"][voice or "default"] = _measure_voice(client, sentences, voice, rounds)
        result["segments_from_cache"] = _from_cache(client) - cached_before
    result["load_after"] = os.getloadavg()[0]
    return result


def _from_cache(client: Client) -> int:
    """Segments that came from the caches of all voices, as workers tell once a second."""
    time.sleep(1.5)
    voices = client.call("metrics")["voices"]
    return sum(voice["cache"]["hits"] for voice in voices if voice["cache"])


def _measure_voice(
    client: Client, sentences: Sequence[str], voice: str, rounds: int
) -> dict[str, dict[str, float]]:
    spans: dict[str, list[float]] = defaultdict(list)
    total = rounds * len(sentences)
    for number in range(total):
        text = sentences[number % len(sentences)]
        client.call("speak", text=text, id=f"b{number}", voice=voice, queue="flush")
        for event in client.events(timeout_s=60.0):
            if event["id"] == f"b{number}" and event["event"] in TERMINAL:
                for name, value in event.get("durations_ms", {}).items():
                    spans[name].append(value)
                break
        print(f"\r{voice or 'default voice'}: {number + 1} of {total}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return {name: statistics_of(values) for name, values in spans.items()}


def statistics_of(values: Sequence[float]) -> dict[str, float]:
    """Median and percentiles (nearest rank) of durations in ms."""
    ordered = sorted(values)

    def rank(fraction: float) -> float:
        return round(ordered[max(0, math.ceil(fraction * len(ordered)) - 1)], 3)

    return {
        "n": len(ordered),
        "median": round(statistics.median(ordered), 3),
        "p95": rank(0.95),
        "p99": rank(0.99),
        "max": round(ordered[-1], 3),
    }


def print_tables(result: dict[str, Any]) -> None:
    """The statistics as tables for people."""
    device = result["device"]
    print(
        f"device {device['name']}, {device['rate']} Hz, latency {device['latency_ms']} ms; "
        f"{result['cores']} cores, load {result['load_before']:.2f} to {result['load_after']:.2f}"
    )
    if cached := result["segments_from_cache"]:
        print(
            f"{cached} segments came from the cache: with new text it takes longer "
            "(measure it with a daemon that has UTTERD_CACHE_MEMORY_MB=0)"
        )
    for voice, stages in result["voices"].items():
        print(f"\n{voice}: {result['sentences']} sentences, {result['rounds']} times each")
        print(f"{'ms':<42}{'median':>10}{'p95':>10}{'p99':>10}{'max':>10}")
        for name, row in stages.items():
            print(
                f"{name.replace('_to_', ' -> ').replace('_', ' '):<42}"
                f"{row['median']:>10.2f}{row['p95']:>10.2f}{row['p99']:>10.2f}{row['max']:>10.2f}"
            )
