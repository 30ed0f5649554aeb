"""Counters and histograms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utterd.daemon.metrics import BOUNDS_MS, Histogram, Metrics


def test_nothing_yet() -> None:
    assert Histogram().describe() == {"count": 0, "mean_ms": 0.0, "buckets": {}}
    assert Metrics().describe() == {"events": {}, "stages": {}}


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0.0, "0.25"), (0.25, "0.25"), (0.26, "0.5"), (10.0, "10"), (2500.0, "2500"), (9e9, "more")],
)
def test_a_bucket_holds_up_to_its_bound(value: float, bucket: str) -> None:
    histogram = Histogram()
    histogram.add(value)
    assert histogram.describe()["buckets"] == {bucket: 1}


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 10_000), max_size=40))
def test_every_value_is_counted_once(values: list[float]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    assert sum(histogram.counts) == histogram.describe()["count"] == len(values)
    for number, bound in enumerate(BOUNDS_MS, start=1):
        assert sum(histogram.counts[:number]) == sum(value <= bound for value in values)


def test_stages_and_events_are_told_apart() -> None:
    metrics = Metrics()
    metrics.events["ended"] += 2
    metrics.stage("admitted_to_encoded", 3.0)
    metrics.stage("admitted_to_encoded", 5.0)
    metrics.stage("other", 1.0)
    described = metrics.describe()
    assert described["events"] == {"ended": 2}
    assert described["stages"]["admitted_to_encoded"]["mean_ms"] == 4.0
    assert set(described["stages"]) == {"admitted_to_encoded", "other"}
