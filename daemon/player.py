"""The player as the daemon sees it: its child, its device, its signs of life."""

import grp
import logging
import time
from typing import Protocol

import msgspec

from utterd.audio import messages as audio
from utterd.audio.client import PlayerProcess
from utterd.audio.ring import Ring
from utterd.daemon.config import Config
from utterd.daemon.memory import Ceiling
from utterd.daemon.overheard import Overheard
from utterd.daemon.supervisor import Child, State
from utterd.sysconfig.client import Seats
from utterd.sysconfig.realtime import Grant

log = logging.getLogger("player")

READY_TIMEOUT_S = 10.0
"""From its start to `Opened` or `DeviceLost`."""
SILENT_NS = 3_000_000_000
"""It says that it is alive once a second."""
OPENING_NS = 9_000_000_000
"""While it may be opening a device it says nothing; it gives that up by itself after 7 s."""


def group_id(name: str) -> int:
    """Number of a group; -1 where there is none of this name."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return -1


class Listener(Protocol):
    """Who wants to know of the player."""

    def player_said(self, message: audio.FromPlayer) -> None:
        """Anything about a generation."""
        ...

    def device_changed(self, opened: audio.Opened | None, lost: audio.DeviceLost | None) -> None:
        """The device was opened or lost."""
        ...

    def renewing(self, what: str, reason: str) -> None:
        """A child that has nothing to do is started anew."""
        ...


class Player:
    """The player, over all its lives."""

    def __init__(
        self, config: Config, ring: Ring, wake_fd: int, *, seats: Seats, listener: Listener
    ) -> None:
        self._config = config
        self._seats = seats
        self._ring = ring
        self._wake_fd = wake_fd
        self._listener = listener
        self.opened: audio.Opened | None = None
        self.lost: audio.DeviceLost | None = None
        self.released = False
        """It let go of the device for want of sound, and opens it again when there is any."""
        self.woken = False
        """It opened the device, last, because there was sound again: nothing had been wrong."""
        self._expected = False
        self.underruns = 0
        """Counted in all its lives, those for want of text among them."""
        self._underruns_before = 0
        self.rss_bytes = 0
        self.alive: audio.Alive | None = None
        """What it last said of itself."""
        self.grants: list[Grant] = []
        """What it was given of the machine."""
        self.ceiling = Ceiling("player_rss_mb", config.limits.player_rss_mb)
        self._overheard = Overheard("player")
        self.child = Child("player", self._spawn, self._said, self._ended, READY_TIMEOUT_S)

    def start(self) -> None:
        """Begin."""
        self._overheard.listen()
        self.child.start()

    def expect(self, sound: bool) -> None:
        """Say whether sound is on its way: a device that was let go is opened meanwhile."""
        if sound != self._expected:
            self._expected = sound
            self.child.send(audio.Expect(sound))

    def check(self, *, idle: bool) -> None:
        """Kill a player that says nothing any more, and start one anew that has grown too large.

        Args:
            idle: whether nothing sounds, or is about to.
        """
        if self.child.state is not State.READY:
            return
        is_open = self.opened is not None and not self.released
        silent_ns = SILENT_NS if is_open else OPENING_NS
        if time.monotonic_ns() - self.child.heard_ns > silent_ns:
            self.child.kill(f"no sign of life for {silent_ns // 10**9} s")
            return
        reason = self.ceiling.look("player", self.child.ready_ns, self.rss_bytes)
        if reason and idle:
            self._renew(reason)

    def _renew(self, reason: str) -> None:
        self._listener.renewing("player", reason)
        self.child.renew(audio.Shutdown(), reason)
        if self.opened is not None:
            self.lost = audio.DeviceLost(
                device=self.opened.device,
                reason="stalled",
                message=f"the player is started anew ({reason})",
                retry_ms=0,
                ns=time.monotonic_ns(),
            )
        self.opened, self.released = None, False

    def stop(self, timeout_s: float) -> None:
        """End it."""
        self.child.stop(audio.Shutdown(), timeout_s)
        self._overheard.close()
        self._config.reference_file.unlink(missing_ok=True)  # of one that was killed

    def _spawn(self) -> PlayerProcess:
        settings = self._config.audio
        configure = audio.Configure(
            sink=settings.sink,
            device=settings.device,
            wav_path=settings.wav,
            rate=settings.rate,
            period_ms=settings.period_ms,
            ramp_ms=settings.ramp_ms,
            speed=settings.speed,
            reference=str(self._config.reference_file),
            reference_gid=group_id(self._config.socket.group),
            release_after_s=settings.release_after_s,
            wake_ms=settings.wake_ms,
            noise=settings.keep_alive or settings.wake_ms > 0,
            role=settings.role,
        )
        with self._seats.spawning():
            process = PlayerProcess(self._ring, self._wake_fd, configure, stderr=self._overheard.fd)
        self.grants = self._seats.seat("player", process.pid)
        if self._expected:
            process.send(audio.Expect(sound=True))
        return process

    def _said(self, message: audio.FromPlayer) -> None:
        if self.child.state is State.STARTING:
            self.child.ready()
        match message:
            case audio.Released():
                self.released = True
            case audio.Opened():
                self.woken = self.released
                self.opened, self.lost, self.released = message, None, False
                self._listener.device_changed(message, None)
            case audio.DeviceLost():
                self.opened, self.lost, self.released = None, message, False
                self._listener.device_changed(None, message)
            case audio.Alive():
                self.alive = message
                self.rss_bytes = message.rss_bytes
                self.underruns = self._underruns_before + message.underruns
            case audio.Underrun():
                self.underruns = self._underruns_before + message.count
                everywhere = msgspec.structs.replace(message, count=self.underruns)
                self._listener.player_said(everywhere)
            case _:
                if isinstance(message, audio.Ended):
                    self.child.worked()
                self._listener.player_said(message)

    def _ended(self, reason: str) -> None:
        self.alive = None
        self._underruns_before = self.underruns
        if self.opened is None or self.child.renewing:
            return
        lost = audio.DeviceLost(
            device=self.opened.device,
            reason="stalled",
            message=f"the player ended ({reason}); it is started again",
            retry_ms=0,
            ns=time.monotonic_ns(),
        )
        self.opened, self.lost, self.released = None, lost, False
        self._listener.device_changed(None, lost)
