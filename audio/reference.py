"""The reference stream: what the device is given, with times, for whoever cancels its echo.

Published by the player, which has the samples, on an XPUB socket beside the daemon's. A message has
three frames: the topic `reference`, a JSON object (`Header`), and mono samples as little-endian
float32: what the callback computes, before a 16-bit device rounds it.
"""

import contextlib
import importlib
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from utterd.audio._callback import Core

if TYPE_CHECKING:
    import zmq

TOPIC = b"reference"
VERSION = 1
WAITING_MESSAGES = 200
"""Kept for a subscriber that is slow (2 s in periods of 10 ms); what is more is lost to it."""
_LONGEST_SUBSCRIPTION = 1024
_SUBSCRIPTIONS_OF_ONE_TURN = 64
"""A flood of them must not starve the sound."""
_BREATH_SECONDS = 0.002
"""Between turns of a flood: a real-time thread that never sleeps counts as one that runs wild."""
_LINGER_MS = 50
_SAMPLE_BYTES = 4


class Header(msgspec.Struct, frozen=True):
    """What a message says of its samples."""

    version: int
    sequence: int
    """Of the messages of this player, from 1: where one is missing, a subscriber was too slow."""
    opened_ns: int
    """When this device was opened, CLOCK_MONOTONIC. Another value: `index` begins anew, and
    `rate` and delay may be others."""
    index: int
    """Frames that the device had taken before the first of these, since it was opened."""
    frames: int
    """0 where the message only tells that the device is gone."""
    rate: int
    """Hz, of the device."""
    dac_ns: int
    """When the first sample sounds, CLOCK_MONOTONIC."""
    gap: int
    """Frames before these that were played and not published: the player could not keep up."""
    device: str
    closed: str
    """Why no samples follow until a device is open again; "" while one plays."""
    format: str = "f32le"
    channels: int = 1


class Reference:
    """The publishing end.

    Args:
        core: The audio thread's data.
        path: The socket file; "" for none.
        gid: Group that may subscribe; -1 to leave it.
        wake_fd: Eventfd that wakes the player.
    """

    def __init__(self, core: Core, path: str, gid: int, wake_fd: int) -> None:
        self.subscribed = False
        self.problem = "" if path else "off"
        """Why it is not published."""
        self._core = core
        self._path = Path(path)
        self._gid = gid
        self._wake_fd = wake_fd
        self._loading: threading.Thread | None = None
        self._loaded = False
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._socket: zmq.Socket[bytes] | None = None
        self._inode = 0
        self._topics: set[bytes] = set()
        self._sequence = 0
        self._opened_ns = 0
        self._rate = 0
        self._device = ""
        self._closed = ""
        self._next: int | None = None
        """Index of the frame that should come next; None where any may."""

    def load(self) -> None:
        """Begin to load ZeroMQ beside what else is done: sound does not wait for it."""
        if self._loading is None and not self.problem:
            self._loading = threading.Thread(target=self._load, daemon=True)
            self._loading.start()

    def _load(self) -> None:
        try:
            importlib.import_module("zmq")
        except ImportError as error:
            self.problem = f"ZeroMQ can't be loaded: {error}"
        self._loaded = True
        os.eventfd_write(self._wake_fd, 1)

    def bind(self) -> int:
        """Open the socket once ZeroMQ is loaded; a file that is left of an earlier player is taken.

        Returns:
            A descriptor to wait on; -1 while, or where, there is none.
        """
        if not self._loaded or self._socket is not None or self.problem:
            return -1
        import zmq  # noqa: PLC0415 - see `load`

        self._context = zmq.Context()
        socket = self._context.socket(zmq.XPUB)
        socket.sndhwm = WAITING_MESSAGES
        socket.maxmsgsize = _LONGEST_SUBSCRIPTION
        socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        try:
            socket.bind(f"ipc://{self._path}")
            self._path.chmod(0o660)
            if self._gid >= 0:
                with contextlib.suppress(PermissionError):
                    os.chown(self._path, -1, self._gid)
            self._inode = self._path.stat().st_ino
        except (OSError, zmq.ZMQError) as error:
            self.problem = f"can't publish at {self._path}: {error.strerror}"
            self._context.destroy(linger=0)
            return -1
        self._socket = socket
        return int(socket.FD)

    def opened(self, device: str, rate: int, opened_ns: int) -> None:
        """A device was opened; what its callbacks were given so far is silence, and left out."""
        self._core.tapped()
        self._device, self._rate, self._opened_ns = device, rate, opened_ns
        self._closed = ""
        self._next = None

    def closed(self, why: str) -> None:
        """The device takes no more, or is closed."""
        self.publish()
        if why != self._closed:
            self._closed = why
            self._tell_closed()

    def publish(self) -> None:
        """Send what the device has taken; learn who listens."""
        if self._socket is None:
            return
        self._attend(self._socket)
        if self.subscribed:
            for index, dac_ns, samples in self._core.tapped():
                self._send(self._socket, index, dac_ns, samples)
            self._attend(self._socket)  # sending may have eaten the wake-up for it

    def _attend(self, socket: "zmq.Socket[bytes]") -> None:
        import zmq  # noqa: PLC0415 - see `load`

        joined = False
        for _ in range(_SUBSCRIPTIONS_OF_ONE_TURN):
            if not int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
                break
            said, *more = socket.recv_multipart(zmq.NOBLOCK)
            if more or not TOPIC.startswith(said[1:]):
                continue
            if said[:1] == b"\x01":
                self._topics.add(said[1:])
                joined = True
            elif said[:1] == b"\x00":
                self._topics.discard(said[1:])
        else:
            time.sleep(_BREATH_SECONDS)
            os.eventfd_write(self._wake_fd, 1)
        if bool(self._topics) != self.subscribed:
            self.subscribed = not self.subscribed
            self._core.listen(self.subscribed)
            self._core.tapped()
            self._next = None
        if joined:
            self._tell_closed()

    def _tell_closed(self) -> None:
        if self._closed and self.subscribed and self._socket is not None:
            self._send(self._socket, self._next or 0, 0, b"", self._closed)
            self._next = None

    def _send(
        self, socket: "zmq.Socket[bytes]", index: int, dac_ns: int, samples: bytes, closed: str = ""
    ) -> None:
        frames = len(samples) // _SAMPLE_BYTES
        self._sequence += 1
        header = Header(
            version=VERSION,
            sequence=self._sequence,
            opened_ns=self._opened_ns,
            index=index,
            frames=frames,
            rate=self._rate,
            dac_ns=dac_ns,
            gap=0 if self._next is None else index - self._next,
            device=self._device,
            closed=closed,
        )
        self._next = index + frames
        socket.send_multipart([TOPIC, msgspec.json.encode(header), samples])

    def close(self) -> None:
        """Remove the socket file, unless another player took it over, and send what is queued."""
        if self._context is None or self._socket is None:
            return
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()
        self._context.destroy(_LINGER_MS)
