"""The reading end of the shared ring, for the player alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from utterd.audio.ring import (
    FILLER,
    FIRST,
    HEADER_BYTES,
    LAST,
    RECORD,
    RECORD_FRAMES,
    RECORD_HEADER_BYTES,
    RECORD_MAGIC,
    Ring,
    RingError,
    record_bytes,
)


@dataclass(frozen=True, slots=True)
class Record:
    """What lies in the ring between two indices: samples, or nothing but an end mark."""

    begin: int
    """Index of the record in bytes, free-running."""
    end: int
    """Index of what follows it."""
    generation: int
    position: int
    """Of the first sample in its generation, at `sample_rate`."""
    sample_rate: int
    """Hz."""
    first: bool
    last: bool
    samples: NDArray[np.float32]
    """Shape (frames,), a copy."""
    start: int
    """Index of the first of them."""

    def index_of(self, position: int) -> int:
        """Index of the sample at a position of the generation, in bytes, free-running."""
        return self.start + 4 * (position - self.position)


class Reader:
    """The reading end, of the player alone. Reading frees nothing: `Ring.advance` does.

    It begins where the last player stopped, in the middle of a record if need be.

    Args:
        ring: The ring.
    """

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self.rewind()

    def rewind(self, generation: int = 0, position: int = 0) -> None:
        """Go back to the first sample that was not handed to the device.

        Args:
            generation: The one that sounds, if any.
            position: Where its sound stopped; more exact than the ring's own index.
        """
        self._next = self._ring.tail
        self._played = self._ring.played
        self._place = generation, position

    @property
    def behind(self) -> bool:
        """Whether something was written that was not read yet."""
        return self._ring.head != self._next

    def read(self) -> Record | None:
        """Take the next record, without what was already played of it.

        Returns:
            None when there is none.

        Raises:
            RingError: The record is damaged; everything up to `head` is left out then.
        """
        ring = self._ring
        while (head := ring.head) != self._next:
            begin = self._next
            at = HEADER_BYTES + begin % ring.capacity
            magic, flags, frames, rate, generation, position, size = RECORD.unpack_from(
                ring.memory, at
            )
            room = HEADER_BYTES + ring.capacity - at
            if (
                magic != RECORD_MAGIC
                or not RECORD_HEADER_BYTES <= size <= min(room, head - begin)
                or size % 64
                or frames > RECORD_FRAMES
                or (not flags & FILLER and size != record_bytes(frames))
            ):
                self._next = head
                raise RingError(f"damaged record at byte {begin} of the sound ring")
            self._next = begin + size
            if flags & FILLER or self._played >= self._next:
                continue
            skip = max(0, self._played - begin - RECORD_HEADER_BYTES) // 4
            if self._place[0] == generation:
                skip = max(skip, self._place[1] - position)
            skip = min(skip, frames)
            if skip == frames > 0 and not flags & LAST:
                continue
            at += RECORD_HEADER_BYTES
            data = ring.memory[at + 4 * skip : at + 4 * frames]
            return Record(
                begin=begin,
                end=begin + size,
                generation=generation,
                position=position + skip,
                sample_rate=rate,
                first=bool(flags & FIRST) and not skip,
                last=bool(flags & LAST),
                samples=np.frombuffer(data, np.float32),
                start=begin + RECORD_HEADER_BYTES + 4 * skip,
            )
        return None
