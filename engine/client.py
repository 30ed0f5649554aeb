"""What the daemon holds of a worker, and of the nursery that forks workers."""

import contextlib
import os
import socket
import subprocess
import sys

import msgspec

from utterd.engine import channel
from utterd.engine.birth import Forked, Process, Started, wait
from utterd.engine.channel import Channel
from utterd.engine.messages import Fork, FromNursery, FromWorker, ToNursery, ToWorker


class Nursery:
    """The process that forks workers; started at once, and can fork when it first says `Alive`.

    Args:
        stderr: where it and its workers complain; None for the daemon's own standard error.
    """

    def __init__(self, stderr: int | None = None) -> None:
        ours, theirs = channel.pair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [
                        *(sys.executable, "-P", "-m", "utterd.engine.nursery"),
                        *("--control-fd", str(theirs.fileno())),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stderr=stderr,
                    # A pool of threads does not survive a fork; the networks have their own.
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                )
            except BaseException:
                ours.close()
                raise
        self._channel = Channel(ours, FromNursery)
        self.pid = self._process.pid

    def fork(self, control: socket.socket, ring_fd: int, wake_fd: int, title: str) -> socket.socket:
        """Order a worker; it is born as soon as the nursery can.

        Args:
            control: its end of the control channel.
            ring_fd: memfd of the sound ring.
            wake_fd: eventfd on which the player waits.
            title: what it is called in lists of processes.

        Returns:
            The socket on which news of it arrive.

        Raises:
            OSError: the nursery is gone, or stands still.
        """
        ours, theirs = channel.pair()
        with theirs:
            try:
                self._channel.send_with_descriptors(
                    Fork(title), [control.fileno(), ring_fd, wake_fd, theirs.fileno()]
                )
            except OSError:
                ours.close()
                raise
        return ours

    def fileno(self) -> int:
        """Readable when it has said something or is gone."""
        return self._channel.fileno()

    def send(self, message: ToNursery) -> None:
        """Send one message without waiting."""
        with contextlib.suppress(EOFError):
            self._channel.send(message, wait=False)

    def receive(self) -> list[FromNursery]:
        """All messages that have arrived.

        Raises:
            EOFError: it is gone.
        """
        arrived: list[FromNursery] = []
        try:
            while (message := self._channel.receive(wait=False)) is not None:
                arrived.append(message)
        except EOFError:
            if not arrived:
                raise
        return arrived

    def kill(self) -> None:
        """End it at once (SIGKILL). Its workers live on."""
        self._process.kill()

    def close(self, timeout_s: float) -> int | None:
        """Close the channel, which ends it, and wait for it; then kill it."""
        self._channel.close()
        return wait(self._process, timeout_s)


class WorkerProcess:
    """A worker, started at once. Its first message must be `Configure`.

    Nothing here blocks but `close`.

    Args:
        ring_fd: memfd of the sound ring.
        wake_fd: eventfd on which the player waits.
        nursery: forks it; without one it gets an interpreter of its own.
        title: what a forked one is called in lists of processes.
        stderr: of one that is not forked; None for the daemon's own.

    Raises:
        OSError: it can't be started.
    """

    def __init__(
        self,
        ring_fd: int,
        wake_fd: int,
        nursery: Nursery | None = None,
        title: str = "",
        *,
        stderr: int | None = None,
    ) -> None:
        ours, theirs = channel.pair()
        self._process: Process
        with theirs:
            try:
                if nursery is None:
                    self._process = Started(theirs, ring_fd, wake_fd, stderr)
                else:
                    birth = nursery.fork(theirs, ring_fd, wake_fd, title)
                    self._process = Forked(birth, ours)
            except BaseException:
                ours.close()
                raise
        self._channel = Channel(ours, FromWorker)
        self._fault: EOFError | None = None

    @property
    def pid(self) -> int:
        """Of its process; 0 until the nursery has told of its birth."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when the worker has said something or is gone."""
        return self._channel.fileno()

    def send(self, message: ToWorker) -> None:
        """Send one message without waiting; a worker that is gone is noticed by `receive`.

        Raises:
            ValueError: the message is too large for a packet.
            BlockingIOError: the worker has taken nothing for long, and its buffer is full.
        """
        with contextlib.suppress(EOFError):
            if not self._channel.send(message, wait=False):
                raise BlockingIOError(f"worker {self.pid} takes no messages")

    def receive(self) -> list[FromWorker]:
        """All messages that have arrived.

        Raises:
            EOFError: the worker is gone, or speaks another language; raised once what it said
                before has been given out.
        """
        arrived: list[FromWorker] = []
        try:
            while not self._fault and (message := self._channel.receive(wait=False)) is not None:
                arrived.append(message)
        except EOFError:
            self._fault = EOFError(f"worker {self.pid} is gone")
        except msgspec.DecodeError as error:
            self._fault = EOFError(f"worker {self.pid} sent what isn't known here: {error}")
        if self._fault and not arrived:
            raise self._fault
        return arrived

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._process.kill()

    def close(self, timeout_s: float) -> int | None:
        """Close the channel, which ends the worker, and wait for it; then kill it.

        Args:
            timeout_s: how long to wait before the kill.

        Returns:
            Its exit code; negative for a signal, None where its nursery died before it or never
            bore it.
        """
        self._channel.close()
        return self._process.wait(timeout_s)
