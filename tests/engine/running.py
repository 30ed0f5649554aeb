"""A real worker process, its ring and its messages, as the daemon and the player hold them."""

import os
import select
import time
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from utterd.audio.reader import Reader
from utterd.audio.ring import Ring
from utterd.engine.client import Nursery, WorkerProcess
from utterd.engine.messages import (
    Abandoned,
    Broken,
    Configure,
    Failed,
    Finished,
    FromWorker,
    Ready,
    Say,
)

PATIENCE_S = 90.0
"""Far beyond what a busy machine takes; a worker that hangs is what it is for."""

M = TypeVar("M")


class Running:
    """One worker.

    Args:
        voice_dir: what it loads.
        ring: shared with another one; its own if None.
        configure: whether to send `Configure` at once.
        nursery: forks it; an interpreter of its own if None.
        options: of `Configure`; one thread if not said otherwise.
    """

    def __init__(
        self,
        voice_dir: Path,
        ring: Ring | None = None,
        configure: bool = True,
        capacity_bytes: int = 1 << 21,
        nursery: Nursery | None = None,
        **options: object,
    ) -> None:
        self._owned = ring is None
        self.ring = ring or Ring.create(capacity_bytes)
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK)
        self.process = WorkerProcess(self.ring.fd, self.wake_fd, nursery, voice_dir.name)
        self.said: list[FromWorker] = []
        self.ended: set[int] = set()
        """Generations whose last sample was heard."""
        self._next: dict[int, int] = {}
        self._reader = Reader(self.ring)
        self._closed = False
        if configure:
            self.process.send(Configure(voice_dir=str(voice_dir), **({"threads": 1} | options)))

    def ready(self) -> Ready:
        """Wait until the voice is loaded."""
        said = self.until(Ready, Broken)
        assert isinstance(said, Ready), said
        return said

    def say(self, generation: int, text: str, **options: object) -> None:
        """Send a piece of text."""
        self.process.send(
            Say(generation=generation, utterance=f"u{generation}", text=text, **options)
        )

    def until(self, *kinds: type[FromWorker], generation: int | None = None) -> FromWorker:
        """Wait for the next message of these kinds; what came before is in `said`."""
        seen = len(self.said)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for message in self.said[seen:]:
                seen += 1
                if isinstance(message, kinds) and generation in (
                    None,
                    getattr(message, "generation", None),
                ):
                    return message
            self.take(0.1)
        raise AssertionError(f"no {kinds} within {PATIENCE_S} s; said: {self.said[-10:]}")

    def take(self, wait_s: float) -> None:
        """Take what has arrived, waiting for a first message."""
        if select.select([self.process], [], [], wait_s)[0]:
            self.said += self.process.receive()

    def until_gone(self) -> None:
        """Take what it says until it is gone."""
        end = time.monotonic() + PATIENCE_S
        try:
            while time.monotonic() < end:
                self.take(1.0)
        except EOFError:
            return
        raise AssertionError(f"the worker still lives after {PATIENCE_S} s")

    def end_of(self, generation: int) -> Finished | Abandoned | Failed:
        """Wait for the end of a generation; the ring must hold all of it."""
        for kind in (Finished, Abandoned, Failed):
            if known := self.of(kind, generation):
                return known[0]
        end = self.until(Finished, Abandoned, Failed, generation=generation)
        assert isinstance(end, Finished | Abandoned | Failed)
        return end

    def played(self, generation: int) -> NDArray[np.float32]:
        """Play a generation to its end, while it is being made."""
        pieces = [np.zeros(0, np.float32)]
        end = time.monotonic() + PATIENCE_S
        while not any(self.of(kind, generation) for kind in (Finished, Abandoned, Failed)):
            assert time.monotonic() < end, f"no end of generation {generation}: {self.said[-5:]}"
            self.take(0.05)
            pieces.append(self.heard().get(generation, pieces[0]))
        pieces.append(self.heard().get(generation, pieces[0]))
        return np.concatenate(pieces)

    def of(self, kind: type[M], generation: int) -> list[M]:
        """All messages of a kind about a generation."""
        return [
            message
            for message in self.said
            if isinstance(message, kind) and getattr(message, "generation", None) == generation
        ]

    def heard(self) -> dict[int, NDArray[np.float32]]:
        """Take all records from the ring: samples by generation, in order and without a gap."""
        pieces: dict[int, list[NDArray[np.float32]]] = {}
        while (record := self._reader.read()) is not None:
            assert record.generation not in self.ended, "samples behind the last one"
            known = pieces.setdefault(record.generation, [])
            expected = self._next.setdefault(record.generation, record.position)
            assert record.position == expected, "a gap in the ring"
            self._next[record.generation] += len(record.samples)
            known.append(record.samples)
            if record.last:
                self.ended.add(record.generation)
            self.ring.advance(record.end, record.end)
        return {number: np.concatenate(parts) for number, parts in pieces.items()}

    def close(self) -> int | None:
        """End the worker and free everything; its exit code."""
        if self._closed:
            return 0
        self._closed = True
        code = self.process.close(5.0)
        os.close(self.wake_fd)
        if self._owned:
            self.ring.close()
        return code
