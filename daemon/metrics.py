"""Counters and stage histograms, kept in memory."""

import math
import statistics
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence

from utterd.daemon import events

BOUNDS_MS = (0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 250, 500, 1000, 2500)
"""Upper bounds of the buckets."""
RECENT_NS = 60_000_000_000
"""What is recent is younger."""
RECENT_KEPT = 256
"""Durations of a stage that are kept one by one."""


class Histogram:
    """Counts of durations in ms by bucket, and the latest ones singly."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.sum_ms = 0.0
        self._recent: deque[tuple[int, float]] = deque(maxlen=RECENT_KEPT)

    def add(self, value_ms: float, now_ns: int) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS_MS, value_ms)] += 1
        self.sum_ms += value_ms
        self._recent.append((now_ns, value_ms))

    def describe(self, now_ns: int) -> dict[str, object]:
        """Count, sum, mean, the buckets that hold anything by upper bound in ms, the last minute.

        The last minute is that of the last 256 durations that are not older.
        """
        count = sum(self.counts)
        bounds = [*(str(bound) for bound in BOUNDS_MS), "more"]
        recent = sorted(value for ns, value in self._recent if now_ns - ns < RECENT_NS)
        return {
            "count": count,
            "sum_ms": round(self.sum_ms, 3),
            "mean_ms": round(self.sum_ms / count, 3) if count else 0.0,
            "buckets": {b: n for b, n in zip(bounds, self.counts, strict=True) if n},
            "last_minute": {
                "count": len(recent),
                "median_ms": round(statistics.median(recent), 3) if recent else 0.0,
                "p95_ms": round(_rank(recent, 0.95), 3) if recent else 0.0,
            },
        }


def _rank(ordered: Sequence[float], fraction: float) -> float:
    """Percentile by nearest rank."""
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


class Metrics:
    """What is counted over the daemon's life."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.ends: dict[str, Counter[str]] = {name: Counter() for name in events.TERMINAL}
        """Terminal events by name and reason (or code; "" for `ended`)."""
        self.stages: dict[str, Histogram] = {}
        self.worker_overhead = Histogram()

    def event(self, event: events.Event) -> None:
        """Count an event; an utterance's durations come with the event that ends it."""
        name = str(event.__struct_config__.tag)
        self.events[name] += 1
        match event:
            case events.Ended():
                self.ends[name][""] += 1
                for stage, value_ms in event.durations_ms.items():
                    self.stage(stage, value_ms)
            case events.Cancelled() | events.Dropped():
                self.ends[name][event.reason] += 1
            case events.Failed():
                self.ends[name][event.code] += 1

    def stage(self, name: str, value_ms: float) -> None:
        """Count the duration of a stage."""
        self.stages.setdefault(name, Histogram()).add(value_ms, time.monotonic_ns())

    def overhead(self, value_ms: float) -> None:
        """Count what a worker spent on an utterance outside the voice's networks."""
        self.worker_overhead.add(value_ms, time.monotonic_ns())

    def describe(self) -> dict[str, object]:
        """Everything."""
        now_ns = time.monotonic_ns()
        return {
            "events": dict(self.events),
            "ends": {name: dict(reasons) for name, reasons in self.ends.items()},
            "stages": {name: found.describe(now_ns) for name, found in self.stages.items()},
            "worker_overhead": self.worker_overhead.describe(now_ns),
        }
