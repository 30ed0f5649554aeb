"""Counters, histograms, and what a Prometheus server reads of them."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from utterd.daemon import events, prometheus
from utterd.daemon.metrics import BOUNDS_MS, RECENT_KEPT, RECENT_NS, Histogram, Metrics

S = 1_000_000_000


def ended(**durations_ms: float) -> events.Ended:
    return events.Ended(dac_ns=1, played_ms=1.0, stages={}, durations_ms=durations_ms)


def test_nothing_yet() -> None:
    nothing = {
        "count": 0,
        "sum_ms": 0.0,
        "mean_ms": 0.0,
        "buckets": {},
        "last_minute": {"count": 0, "median_ms": 0.0, "p95_ms": 0.0},
    }
    assert Histogram().describe(0) == nothing
    assert Metrics().describe() == {
        "events": {},
        "ends": {"ended": {}, "cancelled": {}, "failed": {}, "dropped": {}},
        "stages": {},
        "worker_overhead": nothing,
    }


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0.0, "0.25"), (0.25, "0.25"), (0.26, "0.5"), (10.0, "10"), (2500.0, "2500"), (9e9, "more")],
)
def test_a_bucket_holds_up_to_its_bound(value: float, bucket: str) -> None:
    histogram = Histogram()
    histogram.add(value, 0)
    assert histogram.describe(0)["buckets"] == {bucket: 1}


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 10_000), max_size=40))
def test_every_value_is_counted_once(values: list[float]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value, 0)
    assert sum(histogram.counts) == histogram.describe(0)["count"] == len(values)
    for number, bound in enumerate(BOUNDS_MS, start=1):
        assert sum(histogram.counts[:number]) == sum(value <= bound for value in values)


def test_the_last_minute_forgets_and_the_rest_does_not() -> None:
    histogram = Histogram()
    for value in (1000.0, 2000.0):
        histogram.add(value, 0)
    for value in range(1, 21):
        histogram.add(float(value), RECENT_NS - S)
    described = histogram.describe(RECENT_NS)
    assert described["count"] == 22
    assert described["last_minute"] == {"count": 20, "median_ms": 10.5, "p95_ms": 19.0}
    later = histogram.describe(2 * RECENT_NS)
    assert later["count"] == 22
    assert later["last_minute"] == {"count": 0, "median_ms": 0.0, "p95_ms": 0.0}


def test_memory_does_not_grow_with_the_load() -> None:
    histogram = Histogram()
    for value in range(10 * RECENT_KEPT):
        histogram.add(float(value), 0)
    recent: Any = histogram.describe(0)["last_minute"]
    assert recent["count"] == RECENT_KEPT
    assert recent["median_ms"] > 9 * RECENT_KEPT


def test_events_ends_and_stages_are_told_apart() -> None:
    metrics = Metrics()
    metrics.event(ended(admitted_to_encoded=3.0))
    metrics.event(ended(admitted_to_encoded=5.0, other=1.0))
    metrics.event(events.Speaking(speaking=True))
    metrics.event(events.Cancelled(reason="flushed", heard_characters=0, played_ms=0.0))
    metrics.event(events.Dropped(reason="expired"))
    metrics.event(events.Failed(code="internal", message="x", recoverable=True))
    metrics.overhead(7.0)
    described: Any = metrics.describe()
    assert described["events"] == {
        "ended": 2,
        "speaking": 1,
        "cancelled": 1,
        "dropped": 1,
        "failed": 1,
    }
    assert described["ends"] == {
        "ended": {"": 2},
        "cancelled": {"flushed": 1},
        "dropped": {"expired": 1},
        "failed": {"internal": 1},
    }
    assert described["stages"]["admitted_to_encoded"]["mean_ms"] == 4.0
    assert set(described["stages"]) == {"admitted_to_encoded", "other"}
    assert described["worker_overhead"]["sum_ms"] == 7.0


def test_every_terminal_event_is_an_end() -> None:
    terminal = {str(one.__struct_config__.tag) for one in events.Terminal.__subclasses__()}
    assert terminal == set(Metrics().ends)


# ---- Prometheus ----


def snapshot(metrics: Metrics | None = None) -> dict[str, Any]:
    """A reply to the command `metrics`."""
    return (metrics or Metrics()).describe() | {
        "audible": True,
        "degraded": [{"what": "journal", "message": "it is full", "since_s": 1.0}],
        "queue": {"on_way": 1, "waiting": 2, "limit": 100, "paused": False},
        "device": {
            "open": True,
            "released": False,
            "name": 'Odd "name"\\\n的',
            "sink": "device",
            "rate": 48000,
            "latency_ms": 12.5,
            "realtime": True,
            "underruns": 3,
        },
        "player": {
            "state": "ready",
            "restarts": 4,
            "rss_bytes": 5,
            "renewals": 1,
            "memory_problem": "it is too large",
            "reference": {"subscribed": True, "frames": 480, "dropped": 24, "problem": ""},
        },
        "voices": [
            {
                "name": "joe-us",
                "state": "waiting",
                "restarts": 6,
                "renewals": 2,
                "memory_problem": "",
                "rss_bytes": 7,
                "breaker": "half open",
                "runtime": "onnx",
                "real_time_factor": 0.25,
                "cache": {
                    "hits": 7,
                    "disk_hits": 2,
                    "misses": 3,
                    "evictions": 4,
                    "damaged": 1,
                    "entries": 6,
                    "bytes": 1000,
                    "disk_bytes": 2000,
                    "problem": "",
                },
            }
        ],
        "daemon": {"rss_bytes": 8, "uptime_s": 9.0, "renewals": 3, "memory_problem": ""},
    }


FOUND = ("memory", "disk", "nowhere")


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by name and labels, as another reader of the format sees it."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_a_reader_of_prometheus_text_gets_the_values() -> None:
    metrics = Metrics()
    for value in (0.2, 4.0, 4.5, 99_999.0):
        metrics.event(ended(admitted_to_encoded=value))
    metrics.event(events.Cancelled(reason="flushed", heard_characters=0, played_ms=0.0))
    read = samples(prometheus.render(snapshot(metrics)))

    def of(name: str, **labels: str) -> float:
        return read[f"utterd_{name}", tuple(sorted(labels.items()))]

    stage = {"stage": "admitted_to_encoded"}
    assert of("stage_seconds_count", **stage) == 4
    assert of("stage_seconds_sum", **stage) == pytest.approx(100.0077)
    assert of("stage_seconds_bucket", **stage, le="0.00025") == 1
    assert of("stage_seconds_bucket", **stage, le="0.003") == 1
    assert of("stage_seconds_bucket", **stage, le="0.005") == 3
    assert of("stage_seconds_bucket", **stage, le="2.5") == 3
    assert of("stage_seconds_bucket", **stage, le="+Inf") == 4
    assert of("utterances_total", end="ended", reason="") == 4
    assert of("utterances_total", end="cancelled", reason="flushed") == 1
    assert of("utterances_total", end="failed", reason="") == 0
    assert of("queue_utterances", state="waiting") == 2
    assert of("device_open", device='Odd "name"\\\n的', sink="device") == 1
    assert of("device_latency_seconds") == 0.0125
    assert of("underruns_total") == 3
    assert of("restarts_total", process="player") == 4
    assert of("restarts_total", process="worker joe-us") == 6
    renewals = {"daemon": 3, "player": 1, "worker joe-us": 2}
    assert {name: of("renewals_total", process=name) for name in renewals} == renewals
    assert [of("over_memory_limit", process=name) for name in renewals] == [0, 1, 0]
    assert of("reference_subscribed") == 1
    assert of("reference_frames_total") == 480
    assert of("reference_dropped_frames_total") == 24
    assert of("resident_memory_bytes", process="daemon") == 8
    assert of("process_state", process="worker joe-us", state="waiting") == 1
    assert of("process_state", process="worker joe-us", state="ready") == 0
    assert of("breaker_state", voice="joe-us", state="half open") == 1
    assert of("breaker_state", voice="joe-us", state="closed") == 0
    assert of("worker_overhead_seconds_count") == 0
    found = {name: of("cache_segments_total", voice="joe-us", found=name) for name in FOUND}
    assert found == {"memory": 5, "disk": 2, "nowhere": 3}
    assert of("cache_bytes", voice="joe-us", place="memory") == 1000
    assert of("cache_bytes", voice="joe-us", place="disk") == 2000
    assert of("cache_evictions_total", voice="joe-us") == 4
    assert of("cache_damaged_total", voice="joe-us") == 1


def with_exporter(use: Callable[[str, int], Awaitable[None]]) -> None:
    """Run `use` with the address of an exporter."""

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        exporter = prometheus.Exporter(f"127.0.0.1:{port}", snapshot)
        await exporter.open()
        try:
            await use("127.0.0.1", port)
        finally:
            exporter.close()

    asyncio.run(run())


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What still comes before the connection is closed, in order or not."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def request(host: str, port: int, head: bytes) -> tuple[int, bytes]:
    """Send bytes, give status and body; status 0 where the connection was closed unanswered."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(head)
    writer.write_eof()
    answer = await rest(reader)
    writer.transport.abort()
    if not answer:
        return 0, b""
    top, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in top
    return int(top.split(b" ")[1]), body


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.0\r\n\r\n", 200),
        (b"GET /metrics?name[]=up HTTP/1.1\r\n\r\n", 200),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics HTTP/2\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\xff\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost:", 400),
        (b"", 400),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 400),
    ],
)
def test_the_port_answers_get_metrics_only(head: bytes, status: int) -> None:
    async def use(host: str, port: int) -> None:
        got, body = await request(host, port, head)
        assert got == status
        if status == 200:
            assert samples(body)["utterd_audible", ()] == 1
            assert samples(body)["utterd_degraded", (("what", "journal"),)] == 1

    with_exporter(use)


def test_a_silent_client_loses_its_connection_and_delays_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "PATIENCE_S", 2.0)

    async def use(host: str, port: int) -> None:
        silent = [await asyncio.open_connection(host, port) for _ in range(5)]
        assert (await request(host, port, b"GET /metrics HTTP/1.1\r\n\r\n"))[0] == 200
        for reader, writer in silent:
            await rest(reader)
            writer.close()

    with_exporter(use)


def test_too_many_connections_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "CONNECTIONS", 2)

    async def use(host: str, port: int) -> None:
        held = [await asyncio.open_connection(host, port) for _ in range(2)]
        await asyncio.sleep(0.1)
        asked = b"GET /metrics HTTP/1.1\r\n\r\n"
        assert (await request(host, port, asked))[0] == 0
        for _, writer in held:
            writer.transport.abort()
        async with asyncio.timeout(30):
            while (await request(host, port, asked))[0] != 200:
                await asyncio.sleep(0.01)

    with_exporter(use)


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "256.1.1.1:9464", "127.0.0.1:{taken}"])
def test_an_address_that_cannot_be_had_is_named(address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = address.format(taken=taken.getsockname()[1])
        with pytest.raises(OSError, match=r"metrics") as caught:
            asyncio.run(prometheus.Exporter(address, snapshot).open())
    assert address in str(caught.value)
    assert "\n" not in str(caught.value)
