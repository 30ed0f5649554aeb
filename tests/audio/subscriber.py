"""A subscriber of the reference stream."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import zmq
from numpy.typing import NDArray

from utterd.audio.reference import TOPIC, Header

PATIENCE = 20.0
"""Seconds until a test gives up; nothing is measured by it."""


@dataclass
class Subscriber:
    """Collects what a player publishes at a socket file."""

    path: Path
    waiting: int = 0
    """Messages that ZeroMQ keeps for it; 0: as many as there are."""
    headers: list[Header] = field(default_factory=list)
    samples: list[NDArray[np.float32]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.rcvhwm = self.waiting
        self._socket.subscribe(TOPIC)
        self._socket.connect(f"ipc://{self.path}")

    def take(self, seconds: float = 0.0) -> None:
        """Take what is there, and comes for a while."""
        until = time.monotonic() + seconds
        while self._socket.poll(max(0, int(1000 * (until - time.monotonic())))):
            topic, header, samples = self._socket.recv_multipart()
            assert topic == TOPIC
            self.headers.append(msgspec.json.decode(header, type=Header))
            self.samples.append(np.frombuffer(samples, "<f4"))
            assert len(self.samples[-1]) == self.headers[-1].frames

    def wait(self, condition: Callable[[Header], bool] = lambda _: True, after: int = 0) -> Header:
        """Wait for a message from number `after` on."""
        until = time.monotonic() + PATIENCE
        while True:
            self.take(0.01)
            for header in self.headers[after:]:
                if condition(header):
                    return header
            assert time.monotonic() < until, f"not among {self.headers[-3:]}"

    @property
    def sound(self) -> NDArray[np.float32]:
        """All samples."""
        return np.concatenate(self.samples)

    def assert_whole(self) -> None:
        """Every message has come, and nothing was left out between them."""
        for before, after in zip(self.headers, self.headers[1:], strict=False):
            assert after.sequence == before.sequence + 1
            assert after.index == before.index + before.frames
            assert after.gap == 0

    def close(self) -> None:
        """Let go of the socket."""
        self._context.destroy(linger=0)
