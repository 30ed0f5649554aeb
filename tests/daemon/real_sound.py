"""The stage with the real ring, feed and callback: what the device gets is read sample by sample.

Every sample that a worker writes has a code of its own, so what is rendered tells which it is.
"""

import os
from collections import deque
from dataclasses import dataclass
from typing import Self

import numpy as np

from tests.daemon.sim_player import LATENCY, MS, PERIOD, Heard
from tests.daemon.sim_ring import Record
from tests.daemon.stage import RATE, Stage
from utterd.audio import messages as audio
from utterd.audio._callback import Core
from utterd.audio.events import to_message
from utterd.audio.feed import LEAD_MS, Feed
from utterd.audio.ring import Ring, Writer
from utterd.daemon.scheduler import Scheduler

RAMP_MS = 1.0
"""One sample at the stage's rate: only samples beside an edge are changed."""
_LOWEST, _STEP, _CODES = 0.1, 1 / 65_536, 45_000


@dataclass(frozen=True, slots=True)
class Code:
    """What a value in the device's buffer means."""

    generation: int
    position: int
    character: int


class RealRing:
    """The shared memory, as the stage's workers see it."""

    def __init__(self) -> None:
        self.ring = Ring.create()
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.codes: list[Code] = []
        """Of every sample that was written."""
        self._writer = Writer(self.ring, self.wake_fd)

    @property
    def records(self) -> int:
        """Whether anything is in it."""
        return self.ring.used

    @property
    def used(self) -> int:
        """About how many samples are in it."""
        return self.ring.used // 4

    @property
    def written(self) -> tuple[int, int]:
        return self.ring.written

    @property
    def begun(self) -> int:
        return self.ring.begun

    @property
    def fence(self) -> int:
        return self.ring.fence

    @fence.setter
    def fence(self, generation: int) -> None:
        self.ring.fence = generation

    def revoke(self, generation: int) -> None:
        self.ring.revoke(generation)

    def is_dropped(self, generation: int) -> bool:
        return self.ring.is_dropped(generation)

    def write(self, record: Record) -> None:
        begin = len(self.codes)
        self.codes += [
            Code(record.generation, record.position + at, character)
            for at, character in enumerate(record.samples)
        ]
        numbers = np.arange(begin, len(self.codes)) % _CODES
        samples = (_LOWEST + numbers * _STEP).astype(np.float32)
        kept = self._writer.write(
            record.generation, record.position, samples, RATE, last=record.last
        )
        assert kept or self.is_dropped(record.generation)

    def meaning(self, value: float) -> Code | None:
        """What a sample is; None for silence and for what a ramp has changed."""
        number = (value - _LOWEST) / _STEP
        if value <= 0 or abs(number - round(number)) > 1e-3:
            return None
        # The latest that has this code.
        back = (len(self.codes) - 1 - round(number)) % _CODES
        return self.codes[len(self.codes) - 1 - back] if back < len(self.codes) else None

    def close(self) -> None:
        self.ring.close()
        os.close(self.wake_fd)


class RealPlayer:
    """Feed and callback; `period` is the device."""

    def __init__(self, ring: RealRing, heard: list[Heard]) -> None:
        self.outbox: deque[audio.FromPlayer] = deque()
        self._ring = ring
        self._heard = heard
        self._latest: Code | None = None
        self._core = Core(ring.ring.memory, ring.wake_fd)
        self._feed = Feed(ring.ring, self._core)
        self._is_open = False
        self.open = True

    @property
    def open(self) -> bool:
        return self._is_open

    @open.setter  # noqa: A003 - the stage's name for it
    def open(self, wanted: bool) -> None:
        if wanted and not self._is_open:
            self._core.configure(RATE, 2, PERIOD, RAMP_MS, LEAD_MS, LATENCY / MS, False, 1.0)
            self._feed.attach(RATE)
        elif self._is_open and not wanted:
            self._feed.detach()
            self._tell()
        self._is_open = wanted

    def close(self) -> None:
        """The device is gone."""
        self.open = False

    def period(self, now_ns: int) -> None:
        if not self.open:
            self._feed.reap(now_ns)
            self._tell()
            return
        self._feed.fill()
        dac_ns = now_ns + LATENCY
        samples = np.frombuffer(self._core.render(PERIOD, dac_ns), np.float32)
        for index in np.flatnonzero(samples):
            code = self._ring.meaning(float(samples[index]))
            if code is not None and code != self._latest:  # the last sample of all fades
                self._latest = code
                sounds_ns = dac_ns + int(index) * MS
                self._heard.append(Heard(code.generation, code.position, code.character, sounds_ns))
        self._tell()

    def _tell(self) -> None:
        self.outbox += map(to_message, self._core.events())


@dataclass(slots=True)
class RealStage(Stage):
    """See the module."""

    @classmethod
    def set_up(cls, *voices: str, **limits: int) -> Self:
        ring = RealRing()
        stage = cls(Scheduler(**limits), ring)
        stage.scheduler.line.revoke = stage.revoke
        stage.player = RealPlayer(ring, stage.heard)
        for voice in voices:
            stage.ready(voice)
        return stage

    def close(self) -> None:
        self.player = None
        self.ring.close()
