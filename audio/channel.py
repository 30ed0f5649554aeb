"""Either end of the control channel: one msgpack struct a packet, never waiting."""

import socket
from collections import deque
from typing import Generic, TypeVar

import msgspec

Received = TypeVar("Received")
_PACKET_BYTES = 1 << 16
_UNSENT = 4096


class Channel(Generic[Received]):
    """A SOCK_SEQPACKET socket that carries typed messages.

    Args:
        sock: The socket; the channel owns it.
        kind: Union of the message structs that come in.
    """

    def __init__(self, sock: socket.socket, kind: object) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._decoder: msgspec.msgpack.Decoder[Received] = msgspec.msgpack.Decoder(kind)
        self._encoder = msgspec.msgpack.Encoder()
        self._unsent: deque[bytes] = deque(maxlen=_UNSENT)
        self.closed = False
        """The other end is gone."""

    def fileno(self) -> int:
        """The socket's descriptor, to wait on; -1 once closed."""
        return self._socket.fileno()

    @property
    def blocked(self) -> bool:
        """Messages wait until the socket is writable; then call `flush`."""
        return bool(self._unsent)

    def send(self, message: msgspec.Struct) -> None:
        """Send a message, or keep it until `flush` where the other end is slow."""
        self._unsent.append(self._encoder.encode(message))
        self.flush()

    def flush(self) -> None:
        """Send what waits."""
        try:
            while self._unsent and not self.closed:
                self._socket.send(self._unsent[0], socket.MSG_NOSIGNAL)
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            self.closed = True

    def receive(self) -> list[Received]:
        """Take all messages that are there. Sets `closed` at the end of the connection.

        Raises:
            msgspec.DecodeError: The other end speaks something else.
        """
        messages: list[Received] = []
        while not self.closed:
            try:
                packet = self._socket.recv(_PACKET_BYTES)
            except BlockingIOError:
                break
            except OSError:
                packet = b""
            if packet:
                messages.append(self._decoder.decode(packet))
            else:
                self.closed = True
        return messages

    def close(self) -> None:
        """Close this end."""
        self.closed = True
        self._socket.close()
