"""The metrics as Prometheus text, on a port of their own: `GET /metrics` and nothing else.

The state is read on the event loop and turned into text on a thread, so a scrape never stands
between a text and its sound; a client that is slow, or sends rubbish, has five seconds.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from utterd.daemon.breaker import State as Breaker
from utterd.daemon.metrics import BOUNDS_MS
from utterd.daemon.supervisor import State as Child

log = logging.getLogger("prometheus")

PATIENCE_S = 5.0
"""Time a client has for its request, and for taking the answer."""
CONNECTIONS = 16
"""At one time; more are closed at once."""
HEAD_BYTES = 8192
"""Of a request; a longer one is refused."""

LOOPBACK = ("127.", "localhost:", "[::1]:")

Snapshot = Mapping[str, Any]
"""The reply to the command `metrics`."""


class Exporter:
    """The port.

    Args:
        address: `ADDRESS:PORT`.
        measure: gives the reply to the command `metrics`; called on the event loop.
    """

    def __init__(self, address: str, measure: Callable[[], Snapshot]) -> None:
        self._address = address
        self._measure = measure
        self._connections = 0
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen.

        Raises:
            OSError: the address can't be had; the message names it.
        """
        host, _, port = self._address.rpartition(":")
        try:
            self._server = await asyncio.start_server(
                self._serve, host.strip("[]"), int(port), limit=HEAD_BYTES
            )
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OSError(
                f"can't listen on {self._address} ({reason}); change listen in [metrics]"
            ) from None
        if not self._address.startswith(LOOPBACK):
            log.warning("other machines can read the metrics", extra={"address": self._address})

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= CONNECTIONS:
                async with asyncio.timeout(PATIENCE_S):
                    writer.write(await self._answer(reader))
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        except (OSError, TimeoutError):
            log.debug("a client was lost")
        finally:
            self._connections -= 1
            writer.transport.abort()  # a closed one does not mind

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, version = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            return _response("400 Bad Request", b"not an HTTP request\n")
        if not version.startswith("HTTP/1."):
            return _response("400 Bad Request", b"only HTTP/1 is spoken here\n")
        if target.partition("?")[0] != "/metrics":
            return _response("404 Not Found", b"there is only /metrics\n")
        if method != "GET":
            return _response("405 Method Not Allowed", b"only GET\n", "Allow: GET")
        text = await asyncio.to_thread(render, self._measure())
        return _response("200 OK", text, content_type=CONTENT_TYPE_LATEST)


def _response(
    status: str, body: bytes, *headers: str, content_type: str = "text/plain; charset=utf-8"
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    head = "\r\n".join([*lines, *headers, "Connection: close", "", ""])
    return head.encode("ascii") + body


def render(snapshot: Snapshot) -> bytes:
    """Prometheus text (version 0.0.4) of a reply to the command `metrics`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(snapshot))
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        yield from _speech(self._snapshot)
        yield from _device(self._snapshot)
        yield from _processes(self._snapshot)
        yield from _voices(self._snapshot)


def _speech(now: Snapshot) -> Iterator[Metric]:
    stages = HistogramMetricFamily(
        "utterd_stage_seconds",
        "Time between two stages of an utterance that ended.",
        labels=["stage"],
    )
    for name, described in now["stages"].items():
        stages.add_metric([name], *_buckets(described))
    yield stages
    overhead = HistogramMetricFamily(
        "utterd_worker_overhead_seconds", "A worker's time for an utterance outside the networks."
    )
    overhead.add_metric([], *_buckets(now["worker_overhead"]))
    yield overhead
    ends = CounterMetricFamily(
        "utterd_utterances",
        "Utterances that are over, by terminal event.",
        labels=["end", "reason"],
    )
    for end, reasons in now["ends"].items():
        for reason, count in (reasons or {"": 0}).items():
            ends.add_metric([end, reason], count)
    yield ends
    published = CounterMetricFamily("utterd_events", "Events by name.", labels=["event"])
    for name, count in now["events"].items():
        published.add_metric([name], count)
    yield published
    queue = GaugeMetricFamily("utterd_queue_utterances", "Utterances that live.", labels=["state"])
    for state in ("on_way", "waiting"):
        queue.add_metric([state], now["queue"][state])
    yield queue
    yield GaugeMetricFamily(
        "utterd_queue_limit_utterances", "May wait at one time.", now["queue"]["limit"]
    )
    yield GaugeMetricFamily("utterd_paused", "Whether speech is paused.", now["queue"]["paused"])


def _device(now: Snapshot) -> Iterator[Metric]:
    device = now["device"]
    yield GaugeMetricFamily(
        "utterd_audible", "Whether something can be heard now.", float(now["audible"])
    )
    degraded = GaugeMetricFamily(
        "utterd_degraded", "1 for each thing that works worse than it should.", labels=["what"]
    )
    for trouble in now["degraded"]:
        degraded.add_metric([trouble["what"]], 1.0)
    yield degraded
    state = GaugeMetricFamily("utterd_device_open", "Whether it plays.", labels=["device", "sink"])
    state.add_metric([device["name"], device["sink"]], float(device["open"]))
    yield state
    yield GaugeMetricFamily(
        "utterd_device_released",
        "Whether it was let go until there is sound.",
        float(device["released"]),
    )
    yield GaugeMetricFamily(
        "utterd_device_latency_seconds", "As its driver tells.", device["latency_ms"] / 1000
    )
    yield GaugeMetricFamily("utterd_device_rate_hertz", "Sample rate; 0: none.", device["rate"])
    yield GaugeMetricFamily(
        "utterd_realtime", "Whether the audio thread has SCHED_FIFO.", float(device["realtime"])
    )
    yield CounterMetricFamily("utterd_underruns", "Gaps in the sound.", device["underruns"])


def _processes(now: Snapshot) -> Iterator[Metric]:
    children = {"player": now["player"]} | {f"worker {v['name']}": v for v in now["voices"]}
    memory = GaugeMetricFamily("utterd_resident_memory_bytes", "Of a process.", labels=["process"])
    for name, process in ({"daemon": now["daemon"]} | children).items():
        memory.add_metric([name], process["rss_bytes"])
    yield memory
    restarts = CounterMetricFamily("utterd_restarts", "Of a child.", labels=["process"])
    states = GaugeMetricFamily(
        "utterd_process_state", "1 for the state that a child is in.", labels=["process", "state"]
    )
    for name, process in children.items():
        restarts.add_metric([name], process["restarts"])
        for state in Child:
            states.add_metric([name, state.value], float(process["state"] == state.value))
    yield restarts
    yield states
    yield from _renewals({"daemon": now["daemon"]} | children)
    yield from _reference(now["player"]["reference"])
    yield GaugeMetricFamily(
        "utterd_uptime_seconds", "Since the daemon's start.", now["daemon"]["uptime_s"]
    )


def _renewals(processes: Mapping[str, Snapshot]) -> Iterator[Metric]:
    renewals = CounterMetricFamily(
        "utterd_renewals",
        "Times a process was started anew because it had grown over its limit.",
        labels=["process"],
    )
    over = GaugeMetricFamily(
        "utterd_over_memory_limit", "Whether a process is over its limit.", labels=["process"]
    )
    for name, process in processes.items():
        renewals.add_metric([name], process["renewals"])
        over.add_metric([name], float(bool(process["memory_problem"])))
    yield renewals
    yield over


def _reference(reference: Snapshot) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "utterd_reference_subscribed",
        "Whether anybody takes the reference stream.",
        float(reference["subscribed"]),
    )
    yield CounterMetricFamily(
        "utterd_reference_frames", "Copied for it by this player.", reference["frames"]
    )
    yield CounterMetricFamily(
        "utterd_reference_dropped_frames", "Not copied for want of room.", reference["dropped"]
    )


def _voices(now: Snapshot) -> Iterator[Metric]:
    breakers = GaugeMetricFamily(
        "utterd_breaker_state", "1 for the state of a voice's breaker.", labels=["voice", "state"]
    )
    factors = GaugeMetricFamily(
        "utterd_real_time_factor",
        "Of a voice, as measured when warmed.",
        labels=["voice", "runtime"],
    )
    for voice in now["voices"]:
        for state in Breaker:
            breakers.add_metric(
                [voice["name"], state.value], float(voice["breaker"] == state.value)
            )
        if voice["runtime"]:
            factors.add_metric([voice["name"], voice["runtime"]], voice["real_time_factor"])
    yield breakers
    yield factors
    yield from _caches({v["name"]: v["cache"] for v in now["voices"] if v["cache"]})


def _caches(caches: Mapping[str, Snapshot]) -> Iterator[Metric]:
    """Since a voice was loaded: they begin anew with its worker."""
    asked = CounterMetricFamily(
        "utterd_cache_segments",
        "Segments that were known from memory, known from disk, or not known.",
        labels=["voice", "found"],
    )
    size = GaugeMetricFamily(
        "utterd_cache_bytes",
        "Samples that are kept; those on disk are of all voices.",
        labels=["voice", "place"],
    )
    evicted = CounterMetricFamily(
        "utterd_cache_evictions", "Segments dropped for want of room or of use.", labels=["voice"]
    )
    damaged = CounterMetricFamily(
        "utterd_cache_damaged", "Entries and files that were damaged.", labels=["voice"]
    )
    for voice, cache in caches.items():
        asked.add_metric([voice, "memory"], cache["hits"] - cache["disk_hits"])
        asked.add_metric([voice, "disk"], cache["disk_hits"])
        asked.add_metric([voice, "nowhere"], cache["misses"])
        size.add_metric([voice, "memory"], cache["bytes"])
        size.add_metric([voice, "disk"], cache["disk_bytes"])
        evicted.add_metric([voice], cache["evictions"])
        damaged.add_metric([voice], cache["damaged"])
    yield from (asked, size, evicted, damaged)


def _buckets(described: Snapshot) -> tuple[list[tuple[str, float]], float]:
    """Cumulative counts by upper bound, and the sum, both in seconds."""
    counted, total = [], 0
    for bound in BOUNDS_MS:
        total += described["buckets"].get(str(bound), 0)
        counted.append((str(bound / 1000), float(total)))
    counted.append(("+Inf", float(described["count"])))
    return counted, described["sum_ms"] / 1000
