"""What is told of the device: all of it by events, and what is new in the log."""

import logging

import pytest

from utterd.audio import messages as audio
from utterd.daemon import device_news, events
from utterd.daemon.device_news import REMIND_NS, DeviceNews

OPENED = audio.Opened(
    device="PCH",
    rate=48_000,
    channels=2,
    period_frames=480,
    latency_ms=20.0,
    realtime=True,
    memory_locked=True,
    ns=1,
)


def lost(message: str) -> audio.DeviceLost:
    return audio.DeviceLost(device="PCH", reason="stalled", message=message, retry_ms=200, ns=1)


def test_each_loss_is_published_and_logged_when_it_is_news(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_ns = 0
    monkeypatch.setattr(device_news.time, "monotonic_ns", lambda: now_ns)
    told: list[events.Event] = []
    news = DeviceNews(told.append)
    for message in ("unplugged", "unplugged", "busy", "busy"):
        news.lost(lost(message))
    assert len(told) == 4
    assert len(caplog.records) == 2
    now_ns = REMIND_NS + 1
    news.lost(lost("busy"))
    assert len(caplog.records) == 3


def test_it_is_back_only_if_it_was_lost(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    told: list[events.Event] = []
    news = DeviceNews(told.append)
    news.opened(OPENED, woken=False)
    news.opened(OPENED, woken=True)
    assert told == []
    assert len(caplog.records) == 1
    news.lost(lost("unplugged"))
    news.opened(OPENED, woken=False)
    news.opened(OPENED, woken=True)
    assert [type(event) for event in told] == [events.DeviceLost, events.DeviceBack]
