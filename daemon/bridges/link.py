"""The way of a bridge to the daemon, for asyncio: a DEALER for each request."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import zmq
import zmq.asyncio

from utterd.daemon.config import Config
from utterd.daemon.protocol import ProtocolError

ANSWER_S = 5.0
"""A daemon that is silent for so long is asked whether it lives, and has as long to say so."""
MOST = 200
"""Requests under way at one time: each costs descriptors, and the daemon's queue is shorter."""


class Link:
    """What the requests of a bridge share.

    Args:
        config: names the daemon's socket.
    """

    def __init__(self, config: Config) -> None:
        self._address = config.control
        self._context = zmq.asyncio.Context()
        self._open = 0

    @contextmanager
    def ask(self, command: str, **fields: object) -> Iterator["Answers"]:
        """Send a command; its answers can be had until the block ends.

        Raises:
            ProtocolError: `queue_full`, too many requests are under way.
        """
        if self._open >= MOST:
            raise ProtocolError(
                "queue_full", f"{self._open} requests are under way", retry_after_ms=1000
            )
        socket: zmq.asyncio.Socket = self._context.socket(zmq.DEALER)
        self._open += 1
        try:
            socket.rcvhwm = 0  # a ROUTER drops what does not fit: no sample may be lost
            # The next daemon knows nothing of this request: better no answer than another's.
            socket.reconnect_ivl = -1
            socket.connect(self._address)
            yield Answers(socket, self._address, json.dumps({"command": command, **fields}))
        finally:
            socket.close(linger=0)
            self._open -= 1

    async def call(self, command: str, **fields: object) -> dict[str, Any]:
        """Send a command that has one answer, and wait for it.

        Raises:
            ProtocolError: the daemon refused it, or does not answer (`unavailable`).
        """
        with self.ask(command, **fields) as answers:
            return (await answers.next())[0]

    def close(self) -> None:
        """Free the sockets."""
        self._context.destroy(linger=0)


class Answers:
    """The answers to one command."""

    def __init__(self, socket: zmq.asyncio.Socket, address: str, command: str) -> None:
        self._socket = socket
        self._address = address
        self._ping()
        socket.send(command.encode())

    def _ping(self) -> None:
        self._socket.send(b'{"command": "ping"}')
        self._pinged = True

    async def next(self) -> tuple[dict[str, Any], bytes]:
        """Wait for the next answer: its object, and the samples behind it (or nothing).

        A daemon may take its time as long as it lives.

        Raises:
            ProtocolError: the daemon refused the command, or does not answer (`unavailable`).
        """
        while True:
            head, *frames = await self._receive()
            reply: dict[str, Any] = json.loads(head)
            if not reply["ok"]:
                raise ProtocolError(**reply["error"])
            if "monotonic_ns" not in reply:
                return reply, frames[0] if frames else b""
            self._pinged = False

    async def _receive(self) -> list[bytes]:
        while not await self._socket.poll(int(ANSWER_S * 1000)):
            if self._pinged:
                raise ProtocolError(
                    "unavailable",
                    f"no daemon answers at {self._address}; start one with `utterd serve`",
                )
            self._ping()
        return await asyncio.ensure_future(self._socket.recv_multipart())
