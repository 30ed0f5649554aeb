"""The control channel between the daemon and a worker: one message a SOCK_SEQPACKET packet."""

import array
import socket
from typing import Any

import msgspec

LARGEST_BYTES = 192 * 1024
"""Of one packet. A text of 48,000 Chinese characters fits."""

_BUFFER_BYTES = 1 << 20


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return ends


class Channel:
    """One end. Any thread may send; one thread receives.

    Args:
        end: of a SOCK_SEQPACKET pair; closed with the channel.
        incoming: the union of message types that come from the other side.
    """

    def __init__(self, end: socket.socket, incoming: Any) -> None:  # noqa: ANN401 - a union type
        self._end = end
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(incoming)
        self._packet = memoryview(bytearray(LARGEST_BYTES))
        """The last one received; what is decoded from it is a copy."""

    def fileno(self) -> int:
        """Readable when a message is there, or the other side is gone."""
        return self._end.fileno()

    def send(self, message: msgspec.Struct, *, wait: bool = True) -> bool:
        """Send one message.

        Args:
            message: a struct of the room's messages.
            wait: block while the other side's buffer is full.

        Returns:
            False if it can't be sent now and `wait` is false.

        Raises:
            EOFError: the other side is gone.
            ValueError: the message is too large for a packet.
        """
        packet = msgspec.msgpack.encode(message)
        if len(packet) > LARGEST_BYTES:
            raise ValueError(
                f"{type(message).__name__} of {len(packet)} bytes is too large to send"
            )
        try:
            self._end.send(packet, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            raise EOFError from None
        return True

    def send_with_descriptors(self, message: msgspec.Struct, descriptors: list[int]) -> None:
        """Send one message without waiting, with descriptors that the other side gets copies of.

        Raises:
            OSError: the other side is gone, or takes nothing.
        """
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        # Not `send_fds`, which ignores its flags.
        self._end.sendmsg([msgspec.msgpack.encode(message)], [rights], socket.MSG_DONTWAIT)

    def receive_with_descriptors(self, most: int) -> tuple[Any, list[int]]:
        """Wait for the next message and the descriptors, at most `most`, that came with it.

        Raises:
            EOFError: the other side is gone.
            msgspec.DecodeError: it isn't a message that is known here.
        """
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._end, LARGEST_BYTES, most)
        except OSError:
            raise EOFError from None
        if not packet:
            raise EOFError
        return self._decoder.decode(packet), descriptors

    def receive(self, *, wait: bool) -> Any:  # noqa: ANN401 - a member of `incoming`
        """Take the next message; None if there is none and `wait` is false.

        Raises:
            EOFError: the other side is gone.
            msgspec.DecodeError: it isn't a message that is known here.
        """
        try:
            length = self._end.recv_into(self._packet, 0, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            raise EOFError from None
        if not length:
            raise EOFError
        return self._decoder.decode(self._packet[:length])

    def close(self) -> None:
        """Close this end; the other one reads the end of the file."""
        self._end.close()
