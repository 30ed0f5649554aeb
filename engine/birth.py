"""How a worker's process comes into being, and how its end is known."""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from typing import Protocol

INTEGER = struct.Struct("<i")
"""A pid or an exit code (negative for a signal), as the nursery tells it."""
_LOST_SECONDS = 0.05
"""How long the nursery may take to tell the exit code of a worker that has ended."""
_KILLED_SECONDS = 1.0
"""Longer than the kernel takes to end a killed process that is not stuck in a device."""


class Process(Protocol):
    """What runs a worker."""

    @property
    def pid(self) -> int:
        """0 until it is born."""
        ...

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        ...

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end, then kill it; the exit code, None where nobody knows it."""
        ...


class Started:
    """A worker in an interpreter of its own.

    Args:
        control: its end of the control channel.
        ring_fd: memfd of the sound ring.
        wake_fd: eventfd on which the player waits.
        stderr: where it complains; None for the daemon's own standard error.
    """

    def __init__(
        self, control: socket.socket, ring_fd: int, wake_fd: int, stderr: int | None
    ) -> None:
        descriptors = (control.fileno(), ring_fd, wake_fd)
        names = ("--control-fd", "--ring-fd", "--wake-fd")
        options = [str(part) for pair in zip(names, descriptors, strict=True) for part in pair]
        # -P: no module of the folder it is started in may stand in for one of Python's.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "utterd.engine.worker", *options],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stderr=stderr,
        )

    @property
    def pid(self) -> int:
        """See `Process.pid`."""
        return self._process.pid

    def kill(self) -> None:
        """See `Process.kill`."""
        self._process.kill()

    def wait(self, timeout_s: float) -> int | None:
        """See `Process.wait`."""
        return wait(self._process, timeout_s)


class Forked:
    """A worker that the nursery forks.

    Args:
        birth: our end of the socket on which the nursery tells of it.
        control: our end of its control channel.
    """

    def __init__(self, birth: socket.socket, control: socket.socket) -> None:
        birth.setblocking(False)
        self._birth = birth
        self._control = control
        self._pid = 0
        self._pidfd = -1
        self._code: int | None = None

    @property
    def pid(self) -> int:
        """See `Process.pid`."""
        self._hear()
        return self._pid

    def kill(self) -> None:
        """See `Process.kill`. One that is not born yet will find that nobody is there."""
        self._hear()
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        else:
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)

    def wait(self, timeout_s: float) -> int | None:
        """See `Process.wait`."""
        self._hear()
        if self._pidfd >= 0 and self._code is None:
            if not _readable(self._pidfd, timeout_s):
                self.kill()
                _readable(self._pidfd, _KILLED_SECONDS)
            _readable(self._birth.fileno(), _LOST_SECONDS)
            self._hear()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        self._birth.close()
        return self._code

    def _hear(self) -> None:
        """Take what the nursery has told: first of its birth, then of its end."""
        while self._birth.fileno() >= 0 and self._code is None:
            try:
                news, descriptors, _, _ = socket.recv_fds(self._birth, 64, 1)
            except OSError:
                return
            if not news:  # the nursery has ended
                return
            (number,) = INTEGER.unpack(news)
            if descriptors:
                self._pid, (self._pidfd,) = number, descriptors
                os.set_inheritable(self._pidfd, False)
            else:
                self._code = number


def _readable(descriptor: int, timeout_s: float) -> bool:
    """Wait until a descriptor has something to say; whether it has."""
    waiting = select.poll()  # not `select`: a daemon with many clients has descriptors above 1023
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(timeout_s * 1000.0))


def wait(process: "subprocess.Popen[bytes]", timeout_s: float) -> int:
    """Wait for a process, then kill it; its exit code."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
