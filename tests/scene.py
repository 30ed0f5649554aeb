"""Random commands to a real daemon that plays a coded voice into a file, and what was heard."""

import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from tests import coded
from tests.daemon_process import TERMINAL, DaemonProcess
from utterd.daemon.client import DaemonError

HEADER_BYTES = 44
FRAME_BYTES = 4
CLIENTS = ("a", "b", "c")
PRIORITIES = ("important", "message", "text", "notification", "progress")
PATIENCE_S = 60.0


def recorded(path: Path) -> int:
    """Samples that are in the file by now, at least."""
    return max(0, (path.stat().st_size - HEADER_BYTES) // FRAME_BYTES) if path.exists() else 0


def recording(path: Path, begin: int) -> NDArray[np.int16]:
    """The left channel from sample `begin` on."""
    return np.fromfile(path, "<i2", offset=HEADER_BYTES + begin * FRAME_BYTES)[::2]


@dataclass(slots=True)
class Asked:
    """An utterance that was accepted, and what was told of it."""

    number: int
    client: str
    priority: str
    text: str
    in_pieces: bool
    closed: bool
    events: list[tuple[dict[str, Any], int]] = field(default_factory=list)
    """Each with the samples that were recorded when it came."""

    @property
    def id(self) -> str:
        """Its id; also that of its number."""
        return f"n{self.number}"

    def of(self, *names: str) -> list[dict[str, Any]]:
        """Its events of these names."""
        return [event for event, _ in self.events if event["event"] in names]

    @property
    def end(self) -> tuple[dict[str, Any], int]:
        """Its terminal event, and what was recorded by then."""
        (end,) = [(e, at) for e, at in self.events if e["event"] in TERMINAL]
        return end


class Scene:
    """A series of random commands.

    Args:
        daemon: its sink is the WAV file `wav`, its voice a coded one.
        wav: the file.
        first: number of the first utterance.
        seed: of the dice.
    """

    def __init__(self, daemon: DaemonProcess, wav: Path, first: int, seed: int) -> None:
        self.dice = random.Random(seed)
        self.asked: list[Asked] = []
        self.held: list[tuple[int, int]] = []
        """From the reply to `pause` to `resume`, in samples of the recording."""
        self.troubled = False
        """The device was lost or the player killed."""
        self.begin = recorded(wav)
        self._daemon = daemon
        self._wav = wav
        self._number = first
        self._paused_at: int | None = None
        self._clients = {name: daemon.client(name) for name in CLIENTS}
        self._watcher = daemon.client("watcher")
        self._watcher.subscribe()
        self._over = False
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._over = True
        self._thread.join()
        for client in (self._watcher, *self._clients.values()):
            client.close()

    def _listen(self) -> None:
        while not self._over:
            for event in self._watcher.events(timeout_s=0.05):
                at = recorded(self._wav)
                for asked in list(self.asked):
                    if asked.id == event["id"]:
                        asked.events.append((event, at))

    # ---- commands ----

    def play(self, count: int, troubles: tuple[str, ...] = ()) -> None:
        """So many commands, then until all is silent."""
        deeds = {
            self.speak: 40,
            self.append: 14,
            self.finish: 8,
            self.cancel_one: 10,
            self.cancel_mine: 3,
            self.cancel_all: 1,
            self.stop: 5,
            self.skip: 3,
            self.pause: 4,
            self.resume: 5,
        }
        for number in range(count):
            (deed,) = self.dice.choices(list(deeds), list(deeds.values()))
            try:
                deed()
            except DaemonError as error:
                if error.code not in ("unknown_id", "bad_request", "queue_full"):
                    raise
            if troubles and number % 8 == 4:
                self.troubled = True
                getattr(self, self.dice.choice(troubles))()
            time.sleep(self.dice.choice((0.0, 0.0, 0.005, 0.02, 0.06)))
        self.resume()
        for asked in self.asked:
            if not asked.closed:
                self._try("finish", asked)
        deadline = time.monotonic() + PATIENCE_S
        while left := [a.id for a in self.asked if not a.of(*TERMINAL)]:
            assert time.monotonic() < deadline, f"no end of {left}; {self._daemon.log.read_text()}"
            time.sleep(0.01)
        time.sleep(0.1)

    def speak(self) -> None:
        """A text, or the beginning of one."""
        dice = self.dice
        in_pieces = dice.random() < 0.25
        number = self._number
        self._number += 1
        asked = Asked(
            number,
            dice.choice(CLIENTS),
            dice.choices(PRIORITIES, (2, 10, 3, 2, 2))[0],
            self._words(0 if in_pieces else 1),
            in_pieces,
            closed=not in_pieces,
        )
        self.asked.append(asked)  # first: its events may come before the reply
        try:
            self._clients[asked.client].call(
                "speak",
                id=asked.id,
                text=asked.text,
                rate=coded.rate_of(number),
                priority=asked.priority,
                more=in_pieces,
                queue=dice.choices(("add", "flush", "replace"), (8, 1, 1))[0],
                on_interrupt=dice.choice(("resume", "resume", "restart", "drop")),
                interruptible=dice.random() < 0.9,
                ttl_ms=dice.choice((0, 0, 0, 100, 2000)),
                key=dice.choice(("", "", "k")),
                marks=dice.random() < 0.3,
            )
        except DaemonError:
            self.asked.remove(asked)
            raise

    def _words(self, least: int) -> str:
        count = self.dice.randrange(least, 7)
        return "".join(
            f"{w}{self.dice.choice(',.')} " for w in self.dice.choices(coded.WORDS, k=count)
        )

    def _one(self, *, is_open: bool) -> Asked | None:
        found = [a for a in self.asked[-8:] if not (is_open and a.closed)]
        return self.dice.choice(found) if found else None

    def _try(self, command: str, asked: Asked, **fields: Any) -> bool:
        try:
            self._clients[asked.client].call(command, id=asked.id, **fields)
        except DaemonError as error:
            if error.code not in ("unknown_id", "bad_request"):
                raise
            return False
        return True

    def append(self) -> None:
        """More of a text."""
        if asked := self._one(is_open=True):
            more = self._words(1)
            if self._try("append", asked, text=more):
                asked.text += more

    def finish(self) -> None:
        """The end of a text."""
        if asked := self._one(is_open=True):
            self._try("finish", asked)
            asked.closed = True

    def cancel_one(self) -> None:
        """One by its id."""
        if asked := self._one(is_open=False):
            self._try("cancel", asked)

    def _any(self, command: str, **fields: Any) -> None:
        self._clients[self.dice.choice(CLIENTS)].call(command, timeout_s=PATIENCE_S, **fields)

    def cancel_mine(self) -> None:
        """All of a client."""
        self._any("cancel")

    def cancel_all(self) -> None:
        """All."""
        self._any("cancel", all=True)

    def stop(self) -> None:
        """What sounds."""
        self._any("stop")

    def skip(self) -> None:
        """What sounds, to the next."""
        self._any("skip")

    def pause(self) -> None:
        """Hold all but what is important."""
        self._any("pause")
        if self._paused_at is None:
            self._paused_at = recorded(self._wav)

    def resume(self) -> None:
        """Go on."""
        if self._paused_at is not None:
            self.held.append((self._paused_at - self.begin, recorded(self._wav) - self.begin))
            self._paused_at = None
        self._any("resume")

    # ---- troubles ----

    def full_disk(self) -> None:
        """The player can't write for a while."""
        player = self._player()
        size = self._wav.stat().st_size
        player.rlimit(psutil.RLIMIT_FSIZE, (size, -1))
        time.sleep(self.dice.choice((0.0, 0.05, 0.3)))
        player.rlimit(psutil.RLIMIT_FSIZE, (-1, -1))

    def kill_player(self) -> None:
        """It dies; another follows."""
        self._player().kill()
        time.sleep(self.dice.choice((0.0, 0.05, 0.3)))

    def _player(self) -> psutil.Process:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._daemon.child("utterd.audio.main")
            except (ValueError, psutil.NoSuchProcess):
                assert time.monotonic() < deadline, "there is no player"
                time.sleep(0.01)

    # ---- what was heard ----

    def heard(self) -> dict[int, list[coded.Stretch]]:
        """Stretches by utterance."""
        found: dict[int, list[coded.Stretch]] = {}
        for stretch in coded.stretches(recording(self._wav, self.begin)):
            found.setdefault(stretch.utterance, []).append(stretch)
        return found
