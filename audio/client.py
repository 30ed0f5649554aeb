"""What the daemon holds of the player process: start it, talk to it, end it.

Whether and when a dead player is started again is the daemon's to decide. A new one goes on where
the sound of the last one stopped, because the ring remembers.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import IO

import msgspec

from utterd.audio.channel import Channel
from utterd.audio.messages import Configure, FromPlayer, ToPlayer
from utterd.audio.ring import Ring


class PlayerProcess:
    """A running player.

    Args:
        ring: What it plays; made by the daemon.
        wake_fd: Eventfd that the writers, and the daemon after `fence`, `revoke` and `paused`,
            write to.
        configure: Its first message.
        stderr: Where its few lines of diagnostics go; None for the daemon's own.
        environment: Variables to add to the daemon's own.

    Raises:
        OSError: The process can't be started.
    """

    def __init__(
        self,
        ring: Ring,
        wake_fd: int,
        configure: Configure,
        *,
        stderr: int | IO[bytes] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "utterd.audio.main"),
                    *("--control-fd", str(theirs.fileno())),
                    *("--ring-fd", str(ring.fd)),
                    *("--wake-fd", str(wake_fd)),
                ],
                pass_fds=(theirs.fileno(), ring.fd, wake_fd),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                # It computes nothing: threads of numpy's would only take memory.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(environment or {})},
            )
        self.pid = self._process.pid
        self._channel: Channel[FromPlayer] = Channel(ours, FromPlayer)
        self.send(configure)

    def fileno(self) -> int:
        """Descriptor to wait on: readable when `receive` has something, or the player is gone."""
        return self._channel.fileno()

    def send(self, message: ToPlayer) -> None:
        """Send a message; never waits. A player that is gone is noticed by `receive`."""
        self._channel.send(message)

    def receive(self) -> list[FromPlayer]:
        """Take the messages that are there; never waits.

        Raises:
            EOFError: The player is gone, or speaks another language; raised once what it said
                before has been given out.
        """
        try:
            messages = self._channel.receive()
        except msgspec.DecodeError as error:
            raise EOFError(f"player {self.pid} sent what isn't known here: {error}") from None
        if self._channel.closed and not messages:
            raise EOFError(f"player {self.pid} is gone")
        return messages

    def kill(self) -> None:
        """End it at once. Sound stops within the device's buffer, without a ramp."""
        self._process.kill()

    def close(self, timeout_s: float) -> int:
        """Close this end and wait for the process, which fades and exits; then kill it.

        Args:
            timeout_s: How long to wait before the kill.

        Returns:
            Its exit code; negative for a signal.
        """
        self._channel.close()
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
