"""Counters and stage histograms, kept in memory."""

from bisect import bisect_left
from collections import Counter

BOUNDS_MS = (0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 150, 250, 500, 1000, 2500)
"""Upper bounds of the buckets."""


class Histogram:
    """Counts of durations in ms by bucket."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.sum_ms = 0.0

    def add(self, value_ms: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS_MS, value_ms)] += 1
        self.sum_ms += value_ms

    def describe(self) -> dict[str, object]:
        """Count, mean and the buckets that hold anything, by upper bound in ms."""
        count = sum(self.counts)
        bounds = [*(str(bound) for bound in BOUNDS_MS), "more"]
        return {
            "count": count,
            "mean_ms": round(self.sum_ms / count, 3) if count else 0.0,
            "buckets": {b: n for b, n in zip(bounds, self.counts, strict=True) if n},
        }


class Metrics:
    """What is counted over the daemon's life."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.stages: dict[str, Histogram] = {}

    def stage(self, name: str, value_ms: float) -> None:
        """Count the duration of a stage."""
        self.stages.setdefault(name, Histogram()).add(value_ms)

    def describe(self) -> dict[str, object]:
        """Everything."""
        return {
            "events": dict(self.events),
            "stages": {name: found.describe() for name, found in self.stages.items()},
        }
