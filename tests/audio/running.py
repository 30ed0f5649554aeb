"""A running player process, and what it says."""

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import psutil

from utterd.audio.client import PlayerProcess
from utterd.audio.deadline import EXIT_HUNG
from utterd.audio.messages import Configure, Expect, FromPlayer, Opened, Released
from utterd.audio.ring import Ring, Writer

PATIENCE = 20.0
"""Seconds until a test gives up; nothing is measured by it."""
Message = TypeVar("Message")


class Running:
    """A ring, a writer and a player, as the daemon would hold them."""

    def __init__(self, configure: Configure, environment: Mapping[str, str] | None = None) -> None:
        self.configure = configure
        self.environment = environment
        self.ring = Ring.create()
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.writer = Writer(self.ring, self.wake_fd)
        self.messages: list[FromPlayer] = []
        self.gone = False
        self.start()

    def start(self) -> None:
        """Start a player, the first or another."""
        self.gone = False
        self.player = PlayerProcess(
            self.ring,
            self.wake_fd,
            self.configure,
            stderr=subprocess.DEVNULL,
            environment=self.environment,
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """What is written within begins to sound only at the end.

        A sink that runs many times as fast as time would else get ahead of the writer.
        """
        self.ring.paused = True
        yield
        self.ring.paused = False

    def wake(self) -> None:
        """Tell the player that the fence, the pause or the gain has changed."""
        os.eventfd_write(self.wake_fd, 1)

    def listen(self, seconds: float) -> None:
        """Take what the player says for a while; gives up early where it is gone."""
        until = time.monotonic() + seconds
        while not self.gone and (left := until - time.monotonic()) > 0:
            self._take(left)

    def wait(
        self,
        kind: type[Message],
        which: Callable[[Message], bool] = lambda _: True,
        *,
        after: int = 0,
    ) -> Message:
        """Wait for a message.

        Args:
            kind: Its type.
            which: What must hold for it.
            after: Look only at the messages from this number on.
        """
        until = time.monotonic() + PATIENCE
        while True:
            for message in self.messages[after:]:
                if isinstance(message, kind) and which(message):
                    return message
            left = until - time.monotonic()
            assert left > 0, f"no {kind.__name__} in {self.messages[after:]}"
            assert not self.gone, f"gone without {kind.__name__}: {self.messages[after:]}"
            self._take(left)

    def wait_until_back(self, told: int) -> None:
        """Wait until the player, or the one that the daemon starts in its place, has a sink again.

        Args:
            told: Look only at the messages from this number on.
        """
        while not any(isinstance(message, Opened) for message in self.messages[told:]):
            if self.gone:
                assert self.player.close(PATIENCE) == EXIT_HUNG
                self.start()
            self.listen(0.2)

    def wait_gone(self) -> int:
        """Wait until the player has ended.

        Returns:
            Its exit status.
        """
        until = time.monotonic() + PATIENCE
        while not self.gone:
            left = until - time.monotonic()
            assert left > 0, "the player does not end"
            self._take(left)
        return self.player.close(PATIENCE)

    def _take(self, seconds: float) -> None:
        if not select.select([self.player], [], [], min(seconds, 0.2))[0]:
            return
        try:
            self.messages += self.player.receive()
        except EOFError:
            self.gone = True

    def close(self) -> int:
        """End the player and let go of everything.

        Returns:
            Its exit status.
        """
        status = self.player.close(PATIENCE)
        self.ring.close()
        os.close(self.wake_fd)
        return status


Start = Callable[..., Running]
"""Starts a player with fields of `Configure`."""


def let_go(running: Running) -> int:
    """Wait until the sink is let go; gives the number of messages so far."""
    after = len(running.messages)
    until = time.monotonic() + PATIENCE
    while not any(isinstance(m, Released) for m in running.messages[after:]):
        assert time.monotonic() < until, running.messages[after:]
        running.wake()  # it looks whenever it wakes
        running.listen(0.01)
    return len(running.messages)


def wait_for_rest(running: Running) -> tuple[int, int]:
    """Wait until one thread is left of a player that has let its sink go.

    Returns:
        Its descriptors, and its resident memory in bytes.
    """
    process = psutil.Process(running.player.pid)
    until = time.monotonic() + PATIENCE
    while process.num_threads() > 1:
        assert time.monotonic() < until, process.threads()
        running.listen(0.01)
    return process.num_fds(), process.memory_info().rss


def cycle(running: Running, times: int) -> tuple[int, int]:
    """Have the sink opened and let go so often; see `wait_for_rest`."""
    for _ in range(times):
        after = len(running.messages)
        running.player.send(Expect(sound=True))
        running.wait(Opened, after=after)
        running.player.send(Expect(sound=False))
        let_go(running)
    return wait_for_rest(running)


def read_wav(path: Path) -> np.ndarray:
    """The left channel of a 16-bit WAV file, as float32; checks that its header is right."""
    data = path.read_bytes()
    assert data[:4] == b"RIFF"
    assert data[8:16] == b"WAVEfmt "
    assert data[36:40] == b"data"
    size = int.from_bytes(data[40:44], "little")
    assert int.from_bytes(data[4:8], "little") == size + 36
    assert size <= len(data) - 44
    samples = np.frombuffer(data[44 : 44 + size], "<i2").reshape(-1, 2)
    np.testing.assert_array_equal(samples[:, 0], samples[:, 1])
    return samples[:, 0].astype(np.float32) / 32767


def runs(samples: np.ndarray) -> list[np.ndarray]:
    """The stretches of sound between stretches of more than 2 ms of silence (at 48 kHz)."""
    loud = np.flatnonzero(samples)
    if not len(loud):
        return []
    cuts = np.flatnonzero(np.diff(loud) > 96)
    begins = [loud[0], *loud[cuts + 1]]
    ends = [*loud[cuts], loud[-1]]
    return [samples[b : e + 1] for b, e in zip(begins, ends, strict=True)]
