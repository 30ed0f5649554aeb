"""A client for Python programs: commands in, replies and events out.

It blocks, and keeps one DEALER socket, so that a reply that comes late (`cancel`, `synthesize`)
does not hold up other programs. For asyncio use pyzmq directly; the protocol is JSON.
"""

import errno
import json
import logging
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import zmq

from utterd.daemon.config import Config

log = logging.getLogger("client")

ANSWER_S = 5.0
"""A daemon that lives answers a ping sooner."""
MISSING_S = 0.5
"""Without an answer for so long it is looked whether there is a daemon at all."""
STARTING_S = 3.0
"""One that is not there may be on its way: so long each call waits for it."""
OPENING_S = 30.0
"""One that holds its lock loads its libraries; it opens its sockets sooner."""
_LOOK_MS = 50


class DaemonError(Exception):
    """The daemon refused a command.

    Attributes:
        code: one of the protocol's codes, or `unavailable` where no daemon answers.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _refusal(code: str, message: str, field: str | None = None, **_: object) -> DaemonError:
    """The error of a reply; what a checker says of a value does not name the field."""
    named = field is None or code != "bad_request" or field in message
    return DaemonError(code, message if named else f"{field}: {message}")


class Client:
    """A connection to the daemon.

    Args:
        config: names the sockets.
        name: the client's name; ids of utterances are unique for it.
        starting_s: so long each call waits, and logs it, for a daemon that is not there: one may
            just be on its way.
    """

    def __init__(self, config: Config, name: str = "", *, starting_s: float = STARTING_S) -> None:
        self._config = config
        self.name = name
        self._starting_s = starting_s
        self._context = zmq.Context()
        self._control: zmq.Socket[bytes] = self._context.socket(zmq.DEALER)
        self._control.linger = 0
        self._control.connect(config.control)
        self._events: zmq.Socket[bytes] | None = None
        self._reference: zmq.Socket[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the sockets."""
        self._context.destroy(linger=0)

    def call(self, command: str, timeout_s: float = 5.0, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
        """Send a command and wait for its reply.

        Raises:
            DaemonError: the daemon refused it, or does not answer.
        """
        return self.call_with_samples(command, timeout_s, **fields)[0]

    def call_with_samples(
        self,
        command: str,
        timeout_s: float = 5.0,
        **fields: Any,  # noqa: ANN401
    ) -> tuple[dict[str, Any], bytes]:
        """The same for commands whose reply has a second frame (empty where it has none)."""
        body = {"command": command, "client": self.name, **fields}
        self._control.send(json.dumps(body).encode())
        if not self._answered(timeout_s):
            raise DaemonError(
                "unavailable",
                f"no daemon answers at {self._config.control}; start one with `utterd serve`",
            )
        head, *frames = self._control.recv_multipart()
        reply: dict[str, Any] = json.loads(head)
        if not reply["ok"]:
            raise _refusal(**reply["error"])
        return reply, frames[0] if frames else b""

    def _answered(self, timeout_s: float) -> bool:
        """Wait for a reply as long as the daemon lives: one that is dead or stuck owes none."""
        deadline = time.monotonic() + timeout_s
        if not self._begins(self._control, timeout_s):
            return False
        while (left_s := deadline - time.monotonic()) > 0:
            if self._control.poll(int(1000 * min(left_s, ANSWER_S)) + 1):
                return True
            if left_s > ANSWER_S and not self._lives():
                return False
        return bool(self._control.poll(0))

    def _begins(self, awaited: "zmq.Socket[bytes]", timeout_s: float) -> bool:
        """Wait until a message has come or a daemon listens; false where there is none.

        Raises:
            DaemonError: this user may not talk to it.
        """
        begin = time.monotonic()
        if awaited.poll(int(1000 * min(timeout_s, MISSING_S)) + 1):
            return True
        told = False
        while not listens(self._config.run_dir):
            patience_s = timeout_s
            if not is_starting(self._config.run_dir):
                patience_s = min(timeout_s, self._starting_s)
            if time.monotonic() - begin > patience_s:
                return False
            if not told:
                told = True
                log.warning(
                    "no daemon is there yet: waiting for one that is being started",
                    extra={"control": self._config.control},
                )
            if awaited.poll(_LOOK_MS):
                return True
        return True

    def _lives(self) -> bool:
        with self._context.socket(zmq.DEALER) as socket:
            socket.linger = 0
            socket.connect(self._config.control)
            socket.send(b'{"command": "ping"}')
            return bool(socket.poll(int(1000 * ANSWER_S)))

    def subscribe(self, *topics: str) -> None:
        """Receive events from now on; all where no topic is named.

        Raises:
            DaemonError: no daemon is there, or it publishes nothing within 5 s.
        """
        self._events = self._context.socket(zmq.SUB)
        self._events.linger = 0
        hello = f"hello.{uuid.uuid4().hex}".encode()
        for topic in (*(name.encode() for name in topics or ("",)), hello):
            self._events.subscribe(topic)
        self._events.connect(self._config.events)
        while self._begins(self._events, OPENING_S) and self._events.poll(int(1000 * ANSWER_S)):
            if self._events.recv_multipart()[0] == hello:
                self._events.unsubscribe(hello)
                return
        raise DaemonError(
            "unavailable",
            f"no daemon publishes at {self._config.events}; start one with `utterd serve`",
        )

    def reference(self, timeout_s: float | None = None) -> Iterator[tuple[dict[str, Any], bytes]]:
        """What is played, from now on, as header and mono samples of little-endian float32.

        Silence is played too. Where it ends, the device is gone (the header of a message without
        samples says so) or the player is; it goes on by itself when they are back.

        Args:
            timeout_s: end when no message has come for so long.
        """
        if self._reference is None:
            self._reference = self._context.socket(zmq.SUB)
            self._reference.linger = 0
            self._reference.subscribe(b"reference")
            self._reference.connect(self._config.reference)
        wait = None if timeout_s is None else int(timeout_s * 1000)
        while self._reference.poll(wait):
            _, header, samples = self._reference.recv_multipart()
            yield json.loads(header), samples

    def events(self, timeout_s: float | None = None) -> Iterator[dict[str, Any]]:
        """Events as they come; ends when none has come for `timeout_s`."""
        if self._events is None:
            raise RuntimeError("call subscribe() first")
        wait = None if timeout_s is None else int(timeout_s * 1000)
        while self._events.poll(wait):
            topic, body = self._events.recv_multipart()
            if not topic.startswith(b"hello."):  # the echo of another subscriber
                yield json.loads(body)


def listens(run_dir: Path) -> bool:
    """Whether a daemon listens in a folder, however busy it is.

    Raises:
        DaemonError: this user may not talk to it.
    """
    path = run_dir / "control.sock"
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        found = probe.connect_ex(str(path))
    if found in (errno.EACCES, errno.EPERM):
        raise DaemonError(
            "unavailable",
            f"{path}: this user may not talk to the daemon there; join its group with "
            "`adduser USER utterd`, or name another folder with --run-dir",
        )
    # With its backlog full it says that it would block: that is a daemon too.
    return found in (0, errno.EAGAIN, errno.EINPROGRESS)


def is_starting(run_dir: Path) -> bool:
    """Whether a daemon has taken a folder, whose sockets it may not have opened yet."""
    try:
        owner = (run_dir / "lock").read_text(encoding="ascii").strip()
    except PermissionError:
        return True
    except OSError:
        return False
    return owner.isdecimal() and Path("/proc", owner).exists()
