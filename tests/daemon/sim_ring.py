"""Stands in for the ring between workers and player: records, revoked generations, how far."""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """Samples in the ring; each is the character it comes from, or -1 in a pause."""

    generation: int
    position: int
    samples: list[int]
    last: bool


class SimRing:
    """What is shared: records, revoked generations, how far was written."""

    def __init__(self) -> None:
        self.records: deque[Record] = deque()
        self.slots = [0] * 256
        self.fence = 1
        self.written = (0, 0)
        self.begun = 0

    @property
    def used(self) -> int:
        return sum(len(record.samples) for record in self.records)

    def revoke(self, generation: int) -> None:
        self.slots[generation % 256] = generation

    def is_dropped(self, generation: int) -> bool:
        return generation < self.fence or self.slots[generation % 256] == generation

    def write(self, record: Record) -> None:
        self.records.append(record)
        self.written = (record.generation, record.position + len(record.samples))
