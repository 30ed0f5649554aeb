"""Records of the shared ring become blocks for the audio thread: resampled, and with their places.

A little sound is kept ahead of the device (`LEAD_MS`). This lead never delays a stop, because the
audio thread looks at the fence itself.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from utterd.audio._callback import BLOCK_FRAMES, Core
from utterd.audio.reader import Reader, Record
from utterd.audio.resample import Resampler
from utterd.audio.ring import Ring

LEAD_MS = 100.0
_LONGEST_LEAD_MS = 500.0
_HURRY_MS = 25.0
_NOTHING = np.zeros(0, np.float32)


def lead_ms(speed: float) -> float:
    """How much sound is kept ahead of a sink that runs `speed` times as fast as time."""
    return min(LEAD_MS * max(1.0, speed), _LONGEST_LEAD_MS)


@dataclass(slots=True)
class _Block:
    samples: NDArray[np.float32]
    generation: int
    origin: int
    index: int
    end: int
    source_rate: int
    tail: int
    played: int
    last: bool = False
    dropped: bool = False


@dataclass(slots=True)
class _Run:
    """Samples of one generation that follow each other without a break."""

    generation: int
    origin: int
    source_rate: int
    resampler: Resampler | None
    end: int
    """Source position behind what came in."""
    index: int = 0
    """Device samples that went out."""

    def continues_with(self, record: Record) -> bool:
        return (record.generation, record.sample_rate, record.position) == (
            self.generation,
            self.source_rate,
            self.end,
        )


class Feed:
    """Keeps the audio thread's queue filled from the ring.

    Args:
        ring: The shared ring.
        core: The audio thread's data.
    """

    def __init__(self, ring: Ring, core: Core) -> None:
        self._ring = ring
        self._core = core
        self._reader = Reader(ring)
        self._rate = 0
        self._lead = 0
        self._newest = 0
        self._run: _Run | None = None
        self._waiting: deque[_Block] = deque()
        self._unplayed: deque[Record] = deque()
        self._held: Record | None = None

    def attach(self, rate: int, speed: float = 1.0) -> None:
        """A device was opened: begin with the first sample that none has taken.

        Args:
            rate: The device's, in Hz.
            speed: How much faster than time it takes samples.
        """
        self._rate = rate
        self._lead = int(lead_ms(speed) * rate / 1000)
        self._rewind()

    def detach(self) -> None:
        """The device is gone: forget what it did not take; the ring still has it."""
        self._core.detach()
        self._rewind()

    def _rewind(self) -> None:
        generation, position = self._core.place()
        self._reader.rewind(generation, position)
        self._run = None
        self._held = None
        self._waiting.clear()
        self._unplayed.clear()

    @property
    def empty(self) -> bool:
        """Whether all that was written has gone to the audio thread."""
        return not (self._held or self._waiting or self._reader.behind)

    def fill(self) -> None:
        """Move samples until the lead is there or the ring is empty.

        Raises:
            RingError: A record was damaged and everything up to there is left out.
        """
        while True:
            self._push_waiting()
            if self._waiting or self._has_lead():
                self._core.ask_refill()
                return
            record = self._held or self._reader.read()
            self._held = None
            if record is None:
                self._hurry()
                return
            self._take(record)

    def _has_lead(self) -> bool:
        # Cancelled sound is no lead: what follows it must be there when the ramp is over.
        return self._core.queued >= self._lead and not self._ring.is_dropped(self._newest)

    def reap(self, now_ns: int) -> None:
        """Without a device: let go of cancelled records, so that their end is told at once.

        Args:
            now_ns: CLOCK_MONOTONIC in ns.
        """
        self._core.reap(now_ns)
        while self._core.room > 0:
            self._held = self._held or self._reader.read()
            if self._held is None or not self._ring.is_dropped(self._held.generation):
                return
            self._take(self._held)
            self._held = None
            self._push_waiting()
            self._core.reap(now_ns)

    def _take(self, record: Record) -> None:
        self._newest = record.generation
        if self._ring.is_dropped(record.generation):
            self._leave_out(record)
            return
        if self._run is None or not self._run.continues_with(record):
            self._end_run()
            same = record.sample_rate == self._rate
            self._run = _Run(
                record.generation,
                record.position,
                record.sample_rate,
                None if same else Resampler(record.sample_rate, self._rate),
                record.position,
            )
        run = self._run
        run.end = record.position + len(record.samples)
        self._unplayed.append(record)
        samples = record.samples
        if run.resampler is not None:
            samples = run.resampler.push(samples, last=record.last)
        self._cut(run, samples, final=record.last, last=record.last)
        if record.last:
            self._run = None

    def _leave_out(self, record: Record) -> None:
        self._run = None
        self._unplayed.clear()
        self._waiting.append(
            _Block(
                samples=_NOTHING,
                generation=record.generation,
                origin=record.position,
                index=0,
                end=record.position,
                source_rate=record.sample_rate,
                tail=record.end,
                played=record.end,
                dropped=True,
            )
        )

    def _end_run(self) -> None:
        """Another run follows: what the resampler still has of this one sounds first."""
        run, self._run = self._run, None
        if run is not None and run.resampler is not None:
            self._cut(run, run.resampler.push(_NOTHING, last=True), final=True, last=False)
        self._unplayed.clear()

    def _hurry(self) -> None:
        run = self._run
        urgent = self._core.queued < _HURRY_MS * self._rate / 1000
        if run is not None and run.resampler is not None and urgent:
            self._cut(run, run.resampler.hurry(), final=False, last=False)
            self._push_waiting()

    def _cut(self, run: _Run, samples: NDArray[np.float32], *, final: bool, last: bool) -> None:
        """Cut device samples into blocks.

        Args:
            run: Where they belong.
            samples: Shape (frames,), at the device's rate.
            final: They are all that comes of the run.
            last: The generation ends with them.
        """
        pieces = [samples[i : i + BLOCK_FRAMES] for i in range(0, len(samples), BLOCK_FRAMES)]
        if last and not pieces:
            pieces = [_NOTHING]
        for number, piece in enumerate(pieces, 1):
            index = run.index
            run.index += len(piece)
            is_final = final and number == len(pieces)
            if is_final:
                end = run.end
            else:
                end = min(run.origin + run.index * run.source_rate // self._rate, run.end)
            tail, played = self._place_in_ring(end, is_final)
            self._waiting.append(
                _Block(
                    piece,
                    run.generation,
                    run.origin,
                    index,
                    end,
                    run.source_rate,
                    tail,
                    played,
                    last=last and is_final,
                )
            )

    def _place_in_ring(self, end: int, final: bool) -> tuple[int, int]:
        """Ring indices (tail, played) that hold once everything before position `end` sounded."""
        tail = self._unplayed[0].begin if self._unplayed else self._ring.tail
        while self._unplayed:
            record = self._unplayed[0]
            tail = record.begin
            if not final and (record.last or record.position + len(record.samples) > end):
                return tail, record.index_of(end)
            tail = record.end
            self._unplayed.popleft()
        return tail, tail

    def _push_waiting(self) -> None:
        while self._waiting and self._core.room > 0:
            block = self._waiting.popleft()
            self._core.push(
                block.samples,
                block.generation,
                block.origin,
                block.index,
                block.end,
                block.source_rate,
                block.tail,
                block.played,
                block.last,
                block.dropped,
            )
