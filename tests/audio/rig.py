"""The audio thread's part without a thread: every period is asked for, so all is deterministic."""

import os

import numpy as np

from utterd.audio._callback import Core
from utterd.audio.events import to_message
from utterd.audio.feed import LEAD_MS, Feed
from utterd.audio.messages import FromPlayer
from utterd.audio.ring import Ring, Writer

RATE = 48_000
PERIOD = 480
RAMP = 240
"""Frames of the ramp: 5 ms."""
START_NS = 1_000_000_000


class Rig:
    """Ring, feed and callback; `play` is the device."""

    def __init__(self, capacity: int = 1 << 21, rate: int = RATE) -> None:
        self.ring = Ring.create(capacity)
        self.wake = os.eventfd(0, os.EFD_NONBLOCK)
        self.core = Core(self.ring.memory, self.wake)
        self.feed = Feed(self.ring, self.core)
        self.writer = Writer(self.ring, self.wake)
        self.rate = rate
        self.played = 0
        self.events: list[FromPlayer] = []
        self.open(rate)

    def open(self, rate: int, *, wake_ms: float = 0.0, noise: bool = False) -> None:
        """A device of this rate is there, perhaps one that has to wake."""
        self.rate = rate
        self.core.configure(rate, 2, PERIOD, 5.0, LEAD_MS, 10.0, False, 1.0, wake_ms, noise)
        self.feed.attach(rate)

    def lose(self) -> None:
        """The device is gone."""
        self.feed.detach()
        self._collect()

    def period(self, frames: int = PERIOD) -> np.ndarray:
        """One period: the feed runs, then the device asks for samples."""
        self.feed.fill()
        heard = np.frombuffer(self.core.render(frames, self.now_ns), np.float32)
        self.played += frames
        self._collect()
        return heard

    def play(self, frames: int) -> np.ndarray:
        """Several periods, at least so many frames."""
        return np.concatenate([self.period() for _ in range(-(-frames // PERIOD))])

    @property
    def now_ns(self) -> int:
        """When the next frame reaches the DAC."""
        return START_NS + self.played * 1_000_000_000 // self.rate

    def take(self) -> list[FromPlayer]:
        """The events since the last time."""
        events, self.events = self.events, []
        return events

    def frame(self, ns: int) -> int:
        """Which frame reaches the DAC at a time."""
        return round((ns - START_NS) * self.rate / 1e9)

    def close(self) -> None:
        """Let go of everything."""
        del self.feed, self.core
        self.ring.close()
        os.close(self.wake)

    def _collect(self) -> None:
        self.events += map(to_message, self.core.events())


def tone(frames: int, level: float = 0.5, rate: int = RATE) -> np.ndarray:
    """A sine of 440 Hz that begins and ends at zero."""
    wave = level * np.sin(2 * np.pi * 440 * np.arange(frames) / rate)
    wave[-200:] *= np.linspace(1, 0, len(wave[-200:]))
    return wave.astype(np.float32)


def steepest(samples: np.ndarray) -> float:
    """The largest step from one sample to the next: a click shows here."""
    return float(np.abs(np.diff(samples)).max())
