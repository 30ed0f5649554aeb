"""Stands in for a worker: says what a real one says, in the order of a real one.

A character is ten samples long, a sample lasts a millisecond, and a clause ends at "。".
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tests.daemon.sim_ring import Record, SimRing
from utterd.engine import messages as engine

CHARACTER = 10
PAUSE = 5
CHUNK = 25
CAPACITY = 600
"""Samples that the ring holds."""

_CLAUSE = re.compile("[^。]*。?")


@dataclass(slots=True)
class Speaking:
    """A generation as its worker knows it."""

    position: int
    written: int
    over: bool = False
    sounded: bool = False
    segments: int = 0


class SimWorker:
    """The worker of one voice: takes `Say`, writes chunk by chunk, tells what it wrote."""

    def __init__(self, ring: SimRing) -> None:
        self.ring = ring
        self.inbox: deque[engine.Say] = deque()
        self.outbox: deque[engine.FromWorker] = deque()
        self.generations: dict[int, Speaking] = {}
        self._current: Iterator[None] | None = None
        self.fails = False
        """Fail the next piece."""

    @property
    def idle(self) -> bool:
        """Nothing that it has could still lead to a record in the ring."""
        is_open = any(not speaking.over for speaking in self.generations.values())
        return not self.inbox and self._current is None and not is_open

    def work(self, chunks: int = 1) -> None:
        """Write up to so many chunks."""
        for _ in range(chunks):
            if self._current is None and self.inbox:
                self._current = self._speak(self.inbox.popleft())
            if self._current is None:
                break
            if next(self._current, StopIteration) is StopIteration:
                self._current = None
        if self._current is None:
            self._sweep()

    def _sweep(self) -> None:
        for generation, speaking in self.generations.items():
            if not speaking.over and self.ring.is_dropped(generation):
                speaking.over = True
                self.outbox.append(engine.Abandoned(generation, speaking.position))

    def _speak(self, say: engine.Say) -> Iterator[None]:
        speaking = self.generations.setdefault(say.generation, Speaking(say.position, say.written))
        if speaking.over:
            return
        if self.fails:
            self.fails = False
            speaking.over = True
            self.outbox.append(engine.Failed(say.generation, "internal", "x", speaking.position))
            return
        clauses = [
            (say.offset + found.start(), say.offset + found.end())
            for found in _CLAUSE.finditer(say.text)
            if found.group() and say.offset + found.end() > say.begin
        ]
        for number, (start, end) in enumerate(clauses, start=1):
            last = say.final and number == len(clauses)
            for _ in self._segment(say, speaking, start, end, last=last):
                if self.ring.is_dropped(say.generation):
                    break
                yield
            if self.ring.is_dropped(say.generation):
                speaking.over = True
                self.outbox.append(engine.Abandoned(say.generation, speaking.position))
                return
        if say.final and not clauses:
            end = say.offset + len(say.text)
            self._tell_segment(say, speaking, end, end, 0, last=True)
            self._write(say, speaking, [], last=True)
        if say.final:
            speaking.over = True
            self.outbox.append(engine.Finished(say.generation, speaking.position, 1.0, 1.0))

    def _segment(
        self, say: engine.Say, speaking: Speaking, start: int, end: int, *, last: bool
    ) -> Iterator[None]:
        samples = [at for at in range(start, end) for _ in range(CHARACTER)]
        pause = 0 if last else PAUSE
        samples += [-1] * pause
        for begin in range(0, len(samples), CHUNK):
            while self.ring.used > CAPACITY and not self.ring.is_dropped(say.generation):
                yield
            if self.ring.is_dropped(say.generation):
                yield
                return
            chunk = samples[begin : begin + CHUNK]
            ends = begin + CHUNK >= len(samples)
            if ends:
                self._tell_segment(
                    say, speaking, start, end, begin, last=last, size=len(samples), pause=pause
                )
            self._write(say, speaking, chunk, last=last and ends)
            yield

    def _tell_segment(
        self,
        say: engine.Say,
        speaking: Speaking,
        start: int,
        end: int,
        passed: int,
        *,
        last: bool,
        size: int = 0,
        pause: int = 0,
    ) -> None:
        at = speaking.position - passed
        words = [engine.Word(c, c + 1, at + CHARACTER * (c - start)) for c in range(start, end)]
        marks = [engine.Mark("here", at)] if size else []
        self.outbox.append(
            engine.Segment(
                *(say.generation, speaking.segments, start, end, at, size),
                *(words, marks, [], last, pause),
            )
        )
        speaking.segments += 1

    def _write(
        self, say: engine.Say, speaking: Speaking, samples: list[int], *, last: bool
    ) -> None:
        known = max(0, speaking.written - speaking.position)
        fresh = samples[known:]
        at = speaking.position + len(samples) - len(fresh)
        if fresh or last:
            self.ring.write(Record(say.generation, at, fresh, last))
        speaking.position += len(samples)
        speaking.written = max(speaking.written, speaking.position)
        if not speaking.sounded and fresh:
            speaking.sounded = True
            self.outbox.append(engine.FirstAudio(say.generation, 1, 2, 3, 4, 5, 6))
