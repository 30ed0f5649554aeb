"""What the daemon holds of a worker: its process and its end of the control channel."""

import contextlib
import subprocess
import sys

import msgspec

from utterd.engine import channel
from utterd.engine.channel import Channel
from utterd.engine.messages import FromWorker, ToWorker

_MODULE = "utterd.engine.worker"


class WorkerProcess:
    """A worker, started at once. Its first message must be `Configure`.

    Nothing here blocks but `close`.

    Args:
        ring_fd: memfd of the sound ring.
        wake_fd: eventfd on which the player waits.
    """

    def __init__(self, ring_fd: int, wake_fd: int) -> None:
        ours, theirs = channel.pair()
        with theirs:
            descriptors = (theirs.fileno(), ring_fd, wake_fd)
            names = ("--control-fd", "--ring-fd", "--wake-fd")
            options = [str(part) for pair in zip(names, descriptors, strict=True) for part in pair]
            try:
                # -P: no module of the folder it is started in may stand in for one of Python's.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", _MODULE, *options],
                    pass_fds=descriptors,
                    stdin=subprocess.DEVNULL,
                )
            except BaseException:
                ours.close()
                raise
        self._channel = Channel(ours, FromWorker)
        self._fault: EOFError | None = None
        self.pid = self._process.pid

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

    def close(self, timeout_s: float) -> int:
        """Close the channel, which ends the worker, and wait for it; then kill it.

        Args:
            timeout_s: how long to wait before the kill.

        Returns:
            Its exit code; negative for a signal.
        """
        self._channel.close()
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
