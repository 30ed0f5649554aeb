"""Stands in for the player: plays ten samples a period, and tells what became of them."""

from collections import deque
from dataclasses import dataclass

from tests.daemon.sim_ring import Record, SimRing
from utterd.audio import messages as audio

MS = 1_000_000
PERIOD = 10
LATENCY = 20 * MS


@dataclass(frozen=True, slots=True)
class Heard:
    """A sample that reached the DAC."""

    generation: int
    position: int
    character: int
    dac_ns: int


class SimPlayer:
    """Takes samples from the ring at the pace of the clock and tells what became of them."""

    def __init__(self, ring: SimRing, heard: list[Heard]) -> None:
        self.ring = ring
        self.heard = heard
        self.outbox: deque[audio.FromPlayer] = deque()
        self.open = True
        self._generation = 0
        self._position = 0
        self._started = False
        self._anchor_due = False
        self._starved = False
        self._missing = 0
        self._reported = 0

    def close(self) -> None:
        """The device is gone."""
        self.open = False
        self._anchor_due = True

    def period(self, now_ns: int) -> None:
        """One callback: ten samples, or what there is."""
        self._drop(now_ns)
        if not self.open:
            return
        for index in range(PERIOD):
            dac_ns = now_ns + LATENCY + index * MS
            if not self._sample(dac_ns):
                self._missing += 1
        self._starved = self._generation != 0 and not self.ring.records

    def _drop(self, now_ns: int) -> None:
        silent_ns = now_ns + LATENCY
        if self._generation and self.ring.is_dropped(self._generation):
            self._reported = self._generation
            self.outbox.append(audio.Dropped(self._generation, self._position, silent_ns))
            self._generation = 0
        if self._generation:
            return
        while self.ring.records and self.ring.is_dropped(self.ring.records[0].generation):
            record = self.ring.records.popleft()
            if self._reported != record.generation:
                self._reported = record.generation
                self.outbox.append(audio.Dropped(record.generation, record.position, silent_ns))

    def _sample(self, dac_ns: int) -> bool:
        if not self.ring.records:
            return False
        record = self.ring.records[0]
        if not self._generation and self.ring.is_dropped(record.generation):
            self._drop(dac_ns - LATENCY)
            return self._sample(dac_ns)
        if not self._generation:
            self._generation, self._position = record.generation, record.position
            self.ring.begun = record.generation
            self._started, self._anchor_due, self._starved = False, True, False
        if self._starved:
            self._starved = False
            if record.samples:
                self._anchor_due = True
                self.outbox.append(
                    audio.Underrun(self._generation, self._position, self._missing, 1, dac_ns)
                )
        self._missing = 0
        if self._anchor_due and record.samples:
            self._anchor_due = False
            self.outbox.append(audio.Anchor(self._generation, record.position, dac_ns))
        if record.samples:
            self._hear(record, dac_ns)
        else:
            self.ring.records.popleft()
            self._end(record, dac_ns)
        return True

    def _hear(self, record: Record, dac_ns: int) -> None:
        self.heard.append(Heard(record.generation, record.position, record.samples[0], dac_ns))
        self._position = record.position + 1
        if not self._started:
            self._started = True
            self.outbox.append(audio.Started(record.generation, dac_ns, dac_ns))
        self.ring.records.popleft()
        if len(record.samples) > 1:
            rest = Record(record.generation, self._position, record.samples[1:], record.last)
            self.ring.records.appendleft(rest)
        else:
            self._end(record, dac_ns)

    def _end(self, record: Record, dac_ns: int) -> None:
        if not record.last:
            return
        if not self._started:
            self.outbox.append(audio.Started(record.generation, dac_ns, dac_ns))
        self.outbox.append(audio.Ended(record.generation, self._position, dac_ns))
        self._generation = 0
