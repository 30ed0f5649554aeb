"""Sockets to structs: commands come in here, replies and events go out here."""

import asyncio
import grp
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from zmq.auth.asyncio import AsyncioAuthenticator

from utterd.daemon.config import Config
from utterd.daemon.protocol import Encoding, ProtocolError, encode, encoding_of, error_reply

log = logging.getLogger("server")

MESSAGES_OF_ONE_TURN = 64
"""Commands taken before others get their turn: a flood must not starve the children."""
SUBSCRIPTIONS_OF_ONE_TURN = 1000
"""The same; they are read in a few milliseconds, as fast as a flood of them comes."""
MOST_ARRIVED = 10_000
"""Commands of which the sockets are emptied before they are closed; a flood would never end."""
LONGEST_SUBSCRIPTION = 1024
"""Bytes; a subscriber that sends more loses its connection."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a command came from and a reply goes to."""

    socket: zmq.asyncio.Socket
    envelope: tuple[bytes, ...]
    encoding: Encoding
    connection: tuple[int, int]
    """Descriptor and inode of the connection when the command was read; (-1, 0) if unknown."""

    @property
    def name(self) -> str:
        """Of the connection, for clients that give none."""
        return self.envelope[0].hex()

    @property
    def is_connected(self) -> bool:
        """Whether the client is still there.

        A ROUTER does not tell when a peer goes. But its messages carry the descriptor they came by,
        and a descriptor that is closed, or another socket by now, has another inode or none.
        """
        descriptor, inode = self.connection
        return descriptor < 0 or _inode(descriptor) == inode


class Server:
    """The command and event sockets.

    Args:
        config: addresses, group, limits.
        handle: gets each frame and its peer; what it raises as `ProtocolError` is answered.
    """

    def __init__(self, config: Config, handle: Callable[[bytes, Peer], None]) -> None:
        self._config = config
        self._handle = handle
        self._context = zmq.asyncio.Context()
        self._routers: list[zmq.asyncio.Socket] = []
        self._publishers: list[zmq.asyncio.Socket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._files: dict[Path, int] = {}
        """Socket files and their inodes."""
        self._authenticator: AsyncioAuthenticator | None = None

    def open(self) -> None:
        """Bind.

        Raises:
            OSError: an address can't be bound; the message names it.
        """
        run_dir = self._config.run_dir
        self._bind(self._config.control, self._config.events, secret=None)
        for name in ("control.sock", "events.sock"):
            self._permit(run_dir / name)
            self._files[run_dir / name] = (run_dir / name).stat().st_ino
        if self._config.socket.tcp:
            self._open_tcp()

    def _open_tcp(self) -> None:
        settings = self._config.socket
        if not settings.curve_secret_key_file or not settings.curve_clients_dir:
            raise OSError(
                "socket.tcp needs socket.curve_secret_key_file and socket.curve_clients_dir: "
                "without keys anyone on the network could speak here"
            )
        try:
            secret = Path(settings.curve_secret_key_file).read_bytes().strip()
        except OSError as error:
            raise OSError(f"{settings.curve_secret_key_file}: {error.strerror}") from None
        self._authenticator = AsyncioAuthenticator(self._context)
        self._authenticator.start()
        self._authenticator.configure_curve(domain="*", location=settings.curve_clients_dir)
        host, _, port = settings.tcp.rpartition(":")
        self._bind(settings.tcp, f"{host}:{int(port) + 1}", secret=secret)

    def _bind(self, control: str, events: str, secret: bytes | None) -> None:
        router = self._context.socket(zmq.ROUTER)
        publisher = self._context.socket(zmq.XPUB)
        # A larger message closes its connection unanswered; one just too long is answered.
        router.maxmsgsize = 64 * self._config.limits.message_bytes
        publisher.maxmsgsize = LONGEST_SUBSCRIPTION
        for socket, address in ((router, control), (publisher, events)):
            socket.linger = 200
            if secret is not None:
                socket.curve_server = True
                socket.curve_secretkey = secret
            try:
                socket.bind(address)
            except zmq.ZMQError as error:
                raise OSError(f"can't listen on {address}: {error.strerror}") from None
        self._routers.append(router)
        self._publishers.append(publisher)
        self._tasks.append(asyncio.create_task(self._serve(router)))
        self._tasks.append(asyncio.create_task(self._greet(publisher)))

    def _permit(self, path: Path) -> None:
        """0660, and the group of the configuration where it exists and we may give it."""
        path.chmod(0o660)
        try:
            group = grp.getgrnam(self._config.socket.group).gr_gid
            os.chown(path, -1, group)
        except (KeyError, PermissionError):
            log.info(
                "socket keeps its group",
                extra={"path": str(path), "wanted": self._config.socket.group},
            )

    async def _serve(self, router: zmq.asyncio.Socket) -> None:
        taken = 0
        while True:
            parts = await _receive_parts(router)
            self._take(router, [part.bytes for part in parts], _connection(parts[-1]))
            taken += 1
            if taken % MESSAGES_OF_ONE_TURN == 0:
                await asyncio.sleep(0)

    def take_arrived(self) -> None:
        """Carry out what has arrived and was not read yet, before the sockets are closed."""
        for router in self._routers:
            plain: zmq.Socket[bytes] = zmq.Socket(router)
            with suppress(zmq.Again):
                for _ in range(MOST_ARRIVED):
                    parts = plain.recv_multipart(zmq.NOBLOCK, copy=False)
                    self._take(router, [part.bytes for part in parts], _connection(parts[-1]))

    async def _greet(self, publisher: zmq.asyncio.Socket) -> None:
        """Echo subscriptions to `hello.ANYTHING`.

        A subscriber whose echo has come knows that its earlier subscriptions are in place.
        """
        plain: zmq.Socket[bytes] = zmq.Socket(publisher)  # a future each would be too slow
        while await publisher.poll():
            for _ in range(SUBSCRIPTIONS_OF_ONE_TURN):
                try:
                    subscription, *more = plain.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                if subscription.startswith(b"\x01hello.") and not more:
                    _send(publisher, [subscription[1:], b"{}"])
            await asyncio.sleep(0)

    def _take(
        self, router: zmq.asyncio.Socket, frames: list[bytes], connection: tuple[int, int]
    ) -> None:
        empty = len(frames) > 2 and not frames[1]  # REQ's delimiter
        envelope = tuple(frames[:2]) if empty else tuple(frames[:1])
        body = frames[len(envelope) :]
        encoding: Encoding = encoding_of(body[0]) if body else "json"
        peer = Peer(router, envelope, encoding, connection)
        try:
            if len(body) != 1:
                raise ProtocolError("bad_request", f"{len(body)} frames instead of one")
            if len(body[0]) > self._config.limits.message_bytes:
                raise ProtocolError(
                    "too_long",
                    f"the message has {len(body[0])} bytes; "
                    f"at most {self._config.limits.message_bytes} are taken",
                )
            self._handle(body[0], peer)
        except ProtocolError as error:
            self.reply(peer, error_reply(error))
        except Exception:
            log.exception("a command failed")
            self.reply(
                peer,
                error_reply(ProtocolError("internal", "the daemon could not do this; see its log")),
            )

    def reply(self, peer: Peer, body: dict[str, Any], *more: bytes) -> None:
        """Answer; a client that is gone or does not read loses the reply, nobody waits."""
        _send(peer.socket, [*peer.envelope, encode(body, peer.encoding), *more])

    def publish(self, topic: bytes, body: bytes) -> None:
        """Publish an event."""
        for publisher in self._publishers:
            _send(publisher, [topic, body])

    def intact(self) -> bool:
        """Whether the socket files are still there, and still ours: clients find us by them."""
        try:
            return all(path.stat().st_ino == inode for path, inode in self._files.items())
        except OSError:
            return False

    def close(self) -> None:
        """Send what is queued (200 ms at most) and remove the sockets; a second time, nothing."""
        for task in self._tasks:
            task.cancel()
        if self._authenticator is not None:
            self._authenticator.stop()
            self._authenticator = None
        self._publishers.clear()
        for router in self._routers:  # first: nobody reads what arrives from now on
            router.close(linger=200)
        self._routers.clear()
        self._context.destroy(linger=200)
        for path in self._files:
            path.unlink(missing_ok=True)
        self._files.clear()


async def _receive_parts(socket: zmq.asyncio.Socket) -> list[zmq.Frame]:
    parts: Awaitable[list[zmq.Frame]] = socket.recv_multipart(copy=False)
    return await parts


def _connection(part: zmq.Frame) -> tuple[int, int]:
    descriptor = part.get(zmq.SRCFD)
    return (descriptor, _inode(descriptor)) if isinstance(descriptor, int) else (-1, 0)


def _inode(descriptor: int) -> int:
    try:
        return os.fstat(descriptor).st_ino if descriptor >= 0 else 0
    except OSError:
        return 0


def _send(socket: zmq.asyncio.Socket, frames: list[bytes]) -> None:
    # ROUTER and XPUB drop instead of blocking, so the future is done at once.
    socket.send_multipart(frames)
