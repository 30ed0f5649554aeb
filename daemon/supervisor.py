"""Children: started, watched, killed when they stand still, started again with back-off."""

import asyncio
import logging
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

log = logging.getLogger("supervisor")

BACK_OFF_S = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
"""Waits before the first, second, ... restart in a row; the last one repeats."""
EXIT_S = 0.05
"""A child that closed its channel is about to exit; its exit code says more than a kill's."""
RENEWAL_S = 5.0
"""A child that was asked to end and has not by then is killed."""
STABLE_S = 30.0
"""A child that lived so long starts again without delay."""


class Client(Protocol):
    """What the daemon holds of a child process."""

    @property
    def pid(self) -> int:
        """Of its process; 0 as long as it has none."""
        ...

    def fileno(self) -> int:
        """Readable when the child has said something or is gone."""
        ...

    def send(self, message: Any) -> None:  # noqa: ANN401  each room has messages of its own
        """Send one message; a child that is gone is noticed by `receive`."""
        ...

    def receive(self) -> list[Any]:
        """All messages there are.

        Raises:
            EOFError: the child is gone.
        """
        ...

    def kill(self) -> None:
        """SIGKILL."""
        ...

    def close(self, timeout_s: float) -> int | None:
        """Wait for the exit, kill after `timeout_s`, free everything; the exit code, if known."""
        ...


class State(Enum):
    """Of a child."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    RENEWING = "renewing"
    """It was asked to end, having nothing to do, and is started again at once."""
    WAITING = "waiting"
    """For the end of its back-off."""
    BROKEN = "broken"
    """It said itself that it can't work; it is not started again by itself."""


class Stimulus(Enum):
    """What can happen to a child."""

    START = "start"
    READY = "ready"
    RENEW = "renew"
    LOST = "lost"
    BREAK = "break"
    STOP = "stop"


TRANSITIONS: dict[tuple[State, Stimulus], State] = {
    (State.STOPPED, Stimulus.START): State.STARTING,
    (State.WAITING, Stimulus.START): State.STARTING,
    (State.BROKEN, Stimulus.START): State.STARTING,
    (State.STARTING, Stimulus.READY): State.READY,
    (State.READY, Stimulus.RENEW): State.RENEWING,
    (State.STARTING, Stimulus.LOST): State.WAITING,
    (State.READY, Stimulus.LOST): State.WAITING,
    (State.RENEWING, Stimulus.LOST): State.WAITING,
    (State.STARTING, Stimulus.BREAK): State.BROKEN,
    (State.READY, Stimulus.BREAK): State.BROKEN,
    (State.RENEWING, Stimulus.BREAK): State.BROKEN,
    (State.BROKEN, Stimulus.LOST): State.BROKEN,
    (State.STOPPED, Stimulus.STOP): State.STOPPED,
    (State.STARTING, Stimulus.STOP): State.STOPPED,
    (State.READY, Stimulus.STOP): State.STOPPED,
    (State.RENEWING, Stimulus.STOP): State.STOPPED,
    (State.WAITING, Stimulus.STOP): State.STOPPED,
    (State.BROKEN, Stimulus.STOP): State.STOPPED,
}


class Child:
    """One child process over all its lives.

    Args:
        name: for the log.
        spawn: starts a process and sends it its configuration.
        on_message: gets every message.
        on_lost: called when a life has ended, before the next begins, with the reason.
        ready_timeout_s: a child that is not ready by then is killed.
    """

    def __init__(
        self,
        name: str,
        spawn: Callable[[], Client],
        on_message: Callable[[Any], None],
        on_lost: Callable[[str], None],
        ready_timeout_s: float,
    ) -> None:
        self.name = name
        self.state = State.STOPPED
        self.restarts = 0
        self.renewals = 0
        """Restarts that were our own wish."""
        self.renewing = False
        """Its life ends by our own wish, or has."""
        self.ready_ns = 0
        """When its current life was ready."""
        self.heard_ns = 0
        """When it last said something."""
        self._spawn = spawn
        self._on_message = on_message
        self._on_lost = on_lost
        self._ready_timeout_s = ready_timeout_s
        self._client: Client | None = None
        self._failures = 0
        self._started_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._reason = ""

    @property
    def pid(self) -> int:
        """Of its current life; 0 if it has none."""
        return self._client.pid if self._client else 0

    def start(self) -> None:
        """Begin a life, where it has none."""
        if self.state not in (State.STOPPED, State.WAITING, State.BROKEN):
            return
        self._apply(Stimulus.START)
        self.renewing = False
        self._cancel_timer()
        loop = asyncio.get_running_loop()
        self._started_at = time.monotonic()
        self.heard_ns = time.monotonic_ns()
        self._reason = ""
        try:
            self._client = self._spawn()
        except OSError as error:
            self._life_ended(f"it can't be started: {error.strerror}")
            return
        log.info("started", extra={"child": self.name})
        loop.add_reader(self._client.fileno(), self._readable)
        self._timer = loop.call_later(self._ready_timeout_s, self._too_late)

    def ready(self) -> None:
        """It can work."""
        self._apply(Stimulus.READY)
        self.ready_ns = time.monotonic_ns()
        log.info("can work", extra={"child": self.name, "pid": self.pid})
        self._cancel_timer()

    def broken(self) -> None:
        """It can't work, and says so itself: this life is over, and no other follows by itself."""
        self._apply(Stimulus.BREAK)
        self._lost()

    def worked(self) -> None:
        """It has done what it is for: should it be lost now, the next life begins at once."""
        self._failures = 0

    def send(self, message: Any) -> None:  # noqa: ANN401
        """Send a message to its current life; dropped if it has none (its loss will be told)."""
        if self._client is not None:
            self._tell(self._client, message)

    def kill(self, reason: str) -> None:
        """End its life; the next begins after the back-off."""
        if self._client is not None:
            log.warning("killed", extra={"child": self.name, "reason": reason})
            self._reason = reason
            self._client.kill()

    def renew(self, message: Any, reason: str) -> None:  # noqa: ANN401
        """Ask one that has nothing to do to end with `message`; the next life begins at once."""
        self._apply(Stimulus.RENEW)
        self.renewing = True
        log.info("renewing", extra={"child": self.name, "reason": reason})
        self._reason = reason
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(RENEWAL_S, self.kill, reason)
        self.send(message)

    def stop(self, message: Any, timeout_s: float) -> None:  # noqa: ANN401
        """Ask it to end with `message` and wait, at most `timeout_s`; it is not started again."""
        self._apply(Stimulus.STOP)
        self._cancel_timer()
        client, self._client = self._client, None
        if client is not None:
            asyncio.get_running_loop().remove_reader(client.fileno())
            self._tell(client, message)
            client.close(timeout_s)

    def _tell(self, client: Client, message: Any) -> None:  # noqa: ANN401
        try:
            client.send(message)
        except BlockingIOError:
            log.warning("killed", extra={"child": self.name, "reason": "it takes no messages"})
            self._reason = "it takes no messages"
            client.kill()

    def _readable(self) -> None:
        client = self._client
        if client is None:
            return
        try:
            messages = client.receive()
        except EOFError:
            self._lost()
            return
        self.heard_ns = time.monotonic_ns()
        for message in messages:
            if self._client is client:  # else this life ended by what it said before
                self._on_message(message)

    def _lost(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        asyncio.get_running_loop().remove_reader(client.fileno())
        code = client.close(EXIT_S)
        self._life_ended(self._reason or _describe(code))

    def _life_ended(self, reason: str) -> None:
        level = logging.INFO if self.renewing else logging.WARNING
        log.log(level, "ended", extra={"child": self.name, "reason": reason})
        loop = asyncio.get_running_loop()
        self._cancel_timer()
        self._apply(Stimulus.LOST)
        stable = self.renewing or time.monotonic() - self._started_at > STABLE_S
        self._failures = 1 if stable else self._failures + 1
        self.renewals += self.renewing
        self._on_lost(reason)
        if self.state is State.WAITING:
            self.restarts += 1
            wait = BACK_OFF_S[min(self._failures, len(BACK_OFF_S)) - 1]
            self._timer = loop.call_later(wait, self.start)

    def _too_late(self) -> None:
        self.kill(f"not ready after {self._ready_timeout_s:.0f} s")

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _apply(self, stimulus: Stimulus) -> None:
        self.state = TRANSITIONS[self.state, stimulus]


def _describe(code: int | None) -> str:
    if code is None:
        return "its exit code is unknown"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
