"""The way of samples from a worker to the player: one writer, one reader, in shared memory.

The ring is a memfd: a header page, then `capacity` bytes of records. It has no name in a file
system, so whatever is killed, nothing stays behind. Indices run freely (they never wrap), and
every one of them has one process that writes it:

    head       writer    bytes written since the beginning
    written    writer    generation and position behind the last sample it wrote
    tail       player    bytes of whole records that were handed to the device
    played     player    the same in the middle of a record: its start + 64 + 4 a played sample
    fence      daemon    lowest generation that may still sound; only ever raised
    revoked    daemon    single generations cancelled above the fence
    pause      daemon    1 while paused
    gain       daemon    linear factor on everything
    heartbeat  player    CLOCK_MONOTONIC of its last callback, in ns
    begun      player    generation that it began last

A record is a 64-byte header and up to 2048 float32 samples, padded to 64 bytes, never split at
the end of the ring. `head` moves once a record is complete, so a writer that dies in the middle
leaves nothing half-written to be read. `audio/native/ring.h` has the same layout in C.
"""

import mmap
import os
import struct
import time
from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, fcntl

import numpy as np
from numpy.typing import NDArray

from utterd.audio._callback import load, store

HEADER_BYTES = 4096
RECORD_FRAMES = 2048
RECORD_HEADER_BYTES = 64
REVOKED_SLOTS = 256

_MAGIC = 0x7574_7465_7264_5247
_VERSION = 2
RECORD_MAGIC = 0x7574_5244
_MAGIC_AT, _VERSION_AT, _CAPACITY_AT = 0, 8, 16
_WRITTEN_GENERATION_AT, _WRITTEN_POSITION_AT = 72, 80
_HEAD_AT, _TAIL_AT, _PLAYED_AT = 64, 128, 136
_FENCE_AT, _PAUSED_AT, _GAIN_AT, _HEARTBEAT_AT, _BEGUN_AT = 192, 256, 264, 320, 328
_REVOKED_AT = 1024

RECORD = struct.Struct("<IIIIQQQ")  # magic, flags, frames, rate, generation, position, bytes
FIRST, LAST, FILLER = 1, 2, 4
_LARGEST_RECORD = RECORD_HEADER_BYTES + 4 * RECORD_FRAMES
_POLL_SECONDS = 0.005


class RingError(Exception):
    """The shared memory is not a ring of this version, or holds a damaged record."""


class Ring:
    """The shared memory itself: its indices, and what the daemon sets in it.

    Args:
        fd: Descriptor of the memfd; the ring owns it and closes it.

    Raises:
        RingError: `fd` is no ring of this version.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        size = os.fstat(fd).st_size
        if size <= HEADER_BYTES:
            raise RingError(f"descriptor {fd} is not a sound ring: it has only {size} bytes")
        self.memory = mmap.mmap(fd, size)
        found = load(self.memory, _MAGIC_AT), load(self.memory, _VERSION_AT)
        self.capacity = load(self.memory, _CAPACITY_AT)
        if found != (_MAGIC, _VERSION) or self.capacity != size - HEADER_BYTES:
            self.memory.close()
            raise RingError(f"descriptor {fd} is not a sound ring of version {_VERSION}")

    @classmethod
    def create(cls, capacity_bytes: int = 1 << 21) -> "Ring":
        """Make a new ring.

        Args:
            capacity_bytes: Room for records; a multiple of 64, at least four records.

        Raises:
            ValueError: The capacity is no such number.
        """
        if capacity_bytes % 64 or capacity_bytes < 4 * _LARGEST_RECORD:
            raise ValueError(
                f"capacity_bytes must be a multiple of 64, at least {4 * _LARGEST_RECORD}, "
                f"not {capacity_bytes}"
            )
        fd = os.memfd_create("utterd-ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        header = bytearray(HEADER_BYTES)
        struct.pack_into("<QQQ", header, 0, _MAGIC, _VERSION, capacity_bytes)
        struct.pack_into("<Q", header, _FENCE_AT, 1)
        struct.pack_into("<d", header, _GAIN_AT, 1.0)
        os.ftruncate(fd, HEADER_BYTES + capacity_bytes)
        os.pwrite(fd, header, 0)
        # Sealed, nobody can shrink it under a reader and kill that one with SIGBUS.
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
        return cls(fd)

    @classmethod
    def attach(cls, fd: int) -> "Ring":
        """Use a ring that another process made.

        Args:
            fd: Inherited descriptor; the ring owns it from now on.

        Raises:
            RingError: `fd` is no ring of this version.
        """
        return cls(fd)

    def close(self) -> None:
        """Unmap the memory and close the descriptor; a second call does nothing."""
        if self.fd >= 0:
            self.memory.close()
            os.close(self.fd)
            self.fd = -1

    @property
    def fence(self) -> int:
        """Lowest generation that may still sound. Only the daemon sets it, and only higher."""
        return load(self.memory, _FENCE_AT)

    @fence.setter
    def fence(self, generation: int) -> None:
        if generation < self.fence:
            raise ValueError(f"the fence is at {self.fence} and can't go back to {generation}")
        store(self.memory, _FENCE_AT, generation)

    def revoke(self, generation: int) -> None:
        """Cancel one generation; others before and after it still sound (daemon only)."""
        store(self.memory, _REVOKED_AT + 8 * (generation % REVOKED_SLOTS), generation)

    def is_dropped(self, generation: int) -> bool:
        """Whether a generation may no longer sound: below the fence, or revoked."""
        slot = _REVOKED_AT + 8 * (generation % REVOKED_SLOTS)
        return generation < self.fence or load(self.memory, slot) == generation

    @property
    def written(self) -> tuple[int, int]:
        """Generation and position behind the last sample written: where a lost writer stopped."""
        memory = self.memory
        return load(memory, _WRITTEN_GENERATION_AT), load(memory, _WRITTEN_POSITION_AT)

    @property
    def begun(self) -> int:
        """Generation that the device began last; 0 before the first.

        Looked at after `revoke`, it is certain: a revoked generation above it never sounds.
        """
        return load(self.memory, _BEGUN_AT)

    @property
    def paused(self) -> bool:
        """Whether sound is paused (set by the daemon; the player ramps and keeps its place)."""
        return load(self.memory, _PAUSED_AT) != 0

    @paused.setter
    def paused(self, paused: bool) -> None:
        store(self.memory, _PAUSED_AT, int(paused))

    @property
    def gain(self) -> float:
        """Linear factor on all sound, 0 to 4 (set by the daemon; the player smooths it)."""
        bits = load(self.memory, _GAIN_AT)
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])

    @gain.setter
    def gain(self, gain: float) -> None:
        if not 0.0 <= gain <= 4.0:
            raise ValueError(f"gain must be 0 to 4, not {gain}")
        store(self.memory, _GAIN_AT, struct.unpack("<Q", struct.pack("<d", gain))[0])

    @property
    def heartbeat_ns(self) -> int:
        """CLOCK_MONOTONIC of the player's last callback in ns; 0 before the first."""
        return load(self.memory, _HEARTBEAT_AT)

    @property
    def head(self) -> int:
        """Bytes written since the beginning."""
        return load(self.memory, _HEAD_AT)

    @property
    def tail(self) -> int:
        """Bytes of whole records handed to the device since the beginning."""
        return load(self.memory, _TAIL_AT)

    @property
    def played(self) -> int:
        """`tail`, or how far the record there was played: its start + 64 + 4 a sample."""
        return load(self.memory, _PLAYED_AT)

    @property
    def used(self) -> int:
        """Bytes in the ring that the device has not taken yet."""
        return self.head - self.tail

    @property
    def free(self) -> int:
        """Bytes that can be written."""
        return self.capacity - self.used

    def advance(self, tail: int, played: int) -> None:
        """Give records back to the writer, as the audio thread does: for readers without a core.

        Args:
            tail: Index behind the last record that is done.
            played: `tail`, or an index inside the next record.
        """
        store(self.memory, _PLAYED_AT, played)
        store(self.memory, _TAIL_AT, tail)


class Writer:
    """The writing end: copies samples in, waits for room, stops when they are cancelled.

    Args:
        ring: The ring; only one `Writer` of all processes may write at a time.
        wake_fd: Eventfd on which the player waits.
    """

    def __init__(self, ring: Ring, wake_fd: int) -> None:
        self._ring = ring
        self._wake_fd = wake_fd

    def write(
        self,
        generation: int,
        position: int,
        samples: NDArray[np.float32],
        sample_rate: int,
        *,
        last: bool = False,
    ) -> bool:
        """Copy samples into the ring, waiting for room in steps of about 5 ms.

        Args:
            generation: 1 or more; grows with every utterance.
            position: Index of the first sample in its generation.
            samples: Mono float32 samples, full scale 1.0; may be empty if `last`.
            sample_rate: Their rate in Hz.
            last: Nothing follows in this generation.

        Returns:
            False as soon as the generation is dropped; what was not written is lost then.

        Raises:
            ValueError: An argument is out of its range.
        """
        if samples.ndim != 1 or samples.dtype != np.float32:
            raise ValueError(
                f"samples must be one row of float32, not {samples.dtype} {samples.shape}"
            )
        if generation < 1 or position < 0 or not 1000 <= sample_rate <= 768_000:
            raise ValueError(
                "no sound can be written with "
                f"{generation=}, {position=}, {sample_rate=}: need >= 1, >= 0, 1000 to 768000"
            )
        done = 0
        while True:
            piece = samples[done : done + RECORD_FRAMES]
            final = done + len(piece) >= len(samples)
            if len(piece) == 0 and not last:
                return not self._ring.is_dropped(generation)
            if not self._wait_for_room(generation, len(piece)):
                return False
            flags = FIRST * (position + done == 0) | LAST * (last and final)
            self._commit(flags, generation, position + done, piece, sample_rate)
            done += len(piece)
            if final:
                return not self._ring.is_dropped(generation)

    def _wait_for_room(self, generation: int, frames: int) -> bool:
        need = 2 * record_bytes(frames)  # a filler at the end may take almost one record's room
        while not self._ring.is_dropped(generation):
            if self._ring.free >= need:
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def _commit(
        self,
        flags: int,
        generation: int,
        position: int,
        piece: NDArray[np.float32],
        sample_rate: int,
    ) -> None:
        ring = self._ring
        head = ring.head
        size = record_bytes(len(piece))
        start = head % ring.capacity
        room = ring.capacity - start
        if room < size:
            RECORD.pack_into(
                ring.memory, HEADER_BYTES + start, RECORD_MAGIC, FILLER, 0, 0, 0, 0, room
            )
            head += room
            start = 0
        at = HEADER_BYTES + start
        RECORD.pack_into(
            ring.memory,
            at,
            RECORD_MAGIC,
            flags,
            len(piece),
            sample_rate,
            generation,
            position,
            size,
        )
        at += RECORD_HEADER_BYTES
        ring.memory[at : at + 4 * len(piece)] = piece.tobytes()
        # Before the head: a writer that dies in between loses this record; the other way round its
        # successor would say it twice.
        store(ring.memory, _WRITTEN_POSITION_AT, position + len(piece))
        store(ring.memory, _WRITTEN_GENERATION_AT, generation)
        store(ring.memory, _HEAD_AT, head + size)
        os.eventfd_write(self._wake_fd, 1)


def record_bytes(frames: int) -> int:
    """Bytes that a record of so many frames takes in the ring."""
    return (RECORD_HEADER_BYTES + 4 * frames + 63) // 64 * 64
