"""A kiosk's months in little time: what its programs ask for, and whether all of it was right."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from tests.daemon_process import TERMINAL, DaemonProcess
from utterd.daemon.client import Client, DaemonError

PHRASES = {
    "zh": ("您好。", "请取票。", "请稍等。", "谢谢。", "请走这边，谢谢。", "OK"),
    "en": ("Welcome.", "Your ticket.", "One moment.", "Thank you. This way."),
}
"""What it says again and again, by language."""
TEMPLATES = {
    "zh": ("{n}号。", "还有{n}位。", "{m}元。", "{n}号，{m}号窗口。"),
    "en": ("Number {n}.", "{m} people.", "{m} dollars.", "{n}, counter {m}."),
}
"""What it says with other numbers every time."""
SOUND = "gong.wav"
MOST_LIVING = 24
"""Requests that live at once."""
SILENCE_S = 60.0
"""A daemon that tells nothing for so long while it owes something hangs."""


@dataclass(slots=True)
class Ledger:
    """What was accepted and what became of it; it keeps nothing of what is over but a byte."""

    ends: bytearray
    """Terminal events of each request."""
    living: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Client and priority of each request without a terminal event."""
    unordered: set[str] = field(default_factory=set)
    """Living ones whose text comes in pieces: others may pass them."""
    kinds: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    _latest: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _sequence: int = 0

    def accept(self, number: int, client: str, priority: str, *, ordered: bool = True) -> None:
        """A request was sent; its events may come before the reply."""
        self.living[f"r{number}"] = client, priority
        if not ordered:
            self.unordered.add(f"r{number}")

    def refuse(self, number: int) -> None:
        """It was not accepted."""
        self.living.pop(f"r{number}", None)
        self.unordered.discard(f"r{number}")

    def see(self, event: dict[str, Any]) -> None:
        """Take an event."""
        if self._sequence and event["sequence"] != self._sequence + 1:
            self.faults.append(f"events {self._sequence + 1} to {event['sequence'] - 1} are lost")
        self._sequence = event["sequence"]
        name, id_ = event["event"], event["id"]
        self.kinds[name] += 1
        if name in ("degraded", "device_lost", "failed"):
            self.faults.append(f"{name}: {event}")
        if name in ("started", "ended") and id_ in self.living and id_ not in self.unordered:
            line = (*self.living[id_], name)
            number = int(id_[1:])
            if number < self._latest.get(line, -1):
                self.faults.append(f"{id_} {name} after r{self._latest[line]}")
            self._latest[line] = number
        if name in TERMINAL:
            self.ends[int(id_[1:])] += 1
            if self.living.pop(id_, None) is None:
                self.faults.append(f"{id_} ended twice, or was never accepted: {event}")
            self.unordered.discard(id_)

    def forget(self, client: str) -> None:
        """A client is gone for good."""
        for line in [line for line in self._latest if line[0] == client]:
            del self._latest[line]


class Kiosk:
    """Programs that talk to a daemon.

    Args:
        daemon: running; its data folder gets a sound.
        requests: that will be made at most.
        languages: of the voice.
        seed: of the dice.
        rate: of speech.
    """

    def __init__(
        self,
        daemon: DaemonProcess,
        requests: int,
        languages: list[str],
        seed: int,
        rate: float = 1.0,
    ) -> None:
        self.asked = 0
        """Requests accepted so far."""
        self.refused: Counter[str] = Counter()
        self.ledger = Ledger(bytearray(requests + 1))
        self._daemon = daemon
        self._dice = random.Random(seed)
        self._rate = rate
        known = [language for language in PHRASES if language in languages]
        self._phrases = [text for language in known for text in PHRASES[language]]
        self._templates = [text for language in known for text in TEMPLATES[language]]
        _make_sound(daemon.config.sounds_dir / SOUND)
        self._watcher = daemon.client("watcher")
        self._watcher.subscribe()
        self._programs = [daemon.client(name) for name in ("tickets", "doors", "guide")]
        self._deeds: dict[Callable[[Client], None], int] = {
            self._say_known: 40,
            self._say_new: 25,
            self._say_urgent: 3,
            self._say_keyed: 4,
            self._say_in_pieces: 4,
            self._say_durably: 4,
            self._say_in_time: 5,
            self._say_with_marks: 6,
            self._play: 6,
            self._cancel: 4,
            self._interrupt: 3,
            self._look: 2,
            self._synthesize: 1,
            self._be_guest: 1,
            self._listen_in: 1,
        }

    def close(self) -> None:
        """Let go of the connections."""
        for client in (self._watcher, *self._programs):
            client.close()

    def ask(self) -> None:
        """Do one thing."""
        (deed,) = self._dice.choices(list(self._deeds), list(self._deeds.values()))
        deed(self._dice.choice(self._programs))
        self.read(0.0)
        self.settle(MOST_LIVING)

    def settle(self, living: int) -> None:
        """Read events until no more than so many requests live.

        Raises:
            TimeoutError: the daemon tells nothing any more.
        """
        while len(self.ledger.living) > living:
            if not self.read(SILENCE_S, enough=1):
                left = sorted(self.ledger.living)
                raise TimeoutError(f"no event for {SILENCE_S:.0f} s; without an end: {left}")

    def read(self, timeout_s: float, enough: int = 1 << 30) -> int:
        """Take the events there are.

        Returns:
            How many.
        """
        count = 0
        for count, event in enumerate(self._watcher.events(timeout_s=timeout_s), start=1):
            self.ledger.see(event)
            if count >= enough:
                break
        return count

    # ---- what programs do ----

    def _say(self, client: Client, text: str, **fields: Any) -> str:
        number = self.asked
        self.asked += 1
        id_ = f"r{number}"
        priority = fields.get("priority", "message")
        self.ledger.accept(number, client.name, priority, ordered=not fields.get("more"))
        command = fields.pop("command", "speak")
        what: dict[str, Any] = {"text": text, "rate": self._rate}
        if command == "play_sound":
            what = {"sound": text}
        try:
            client.call(command, timeout_s=SILENCE_S, id=id_, **(what | fields))
        except DaemonError as error:
            self.asked -= 1
            self.ledger.refuse(number)
            self.refused[error.code] += 1
        return id_

    def _try(self, client: Client, command: str, **fields: Any) -> None:
        """A command about an utterance that may be over by now."""
        try:
            client.call(command, timeout_s=SILENCE_S, **fields)
        except DaemonError as error:
            self.refused[error.code] += 1

    def _new(self) -> str:
        template = self._dice.choice(self._templates)
        return template.format(n=self._dice.randrange(1, 999), m=self._dice.randrange(1, 60))

    def _say_known(self, client: Client) -> None:
        self._say(client, self._dice.choice(self._phrases))

    def _say_new(self, client: Client) -> None:
        self._say(client, self._new())

    def _say_urgent(self, client: Client) -> None:
        priority = self._dice.choice(("important", "text", "notification", "progress"))
        on_interrupt = self._dice.choice(("resume", "restart", "drop"))
        self._say(client, self._new(), priority=priority, on_interrupt=on_interrupt)

    def _say_keyed(self, client: Client) -> None:
        self._say(client, self._new(), key=self._dice.choice("ab"))

    def _say_in_pieces(self, client: Client) -> None:
        text = self._new()
        id_ = self._say(client, "", more=True)
        for begin in range(0, len(text), 4):
            self._try(client, "append", id=id_, text=text[begin : begin + 4])
        self._try(client, "finish", id=id_)

    def _say_durably(self, client: Client) -> None:
        self._say(client, self._new(), durable=True)

    def _say_in_time(self, client: Client) -> None:
        self._say(client, self._new(), ttl_ms=self._dice.choice((1, 20, 2000)))

    def _say_with_marks(self, client: Client) -> None:
        self._say(client, self._new(), marks=True, volume=0.5, pitch=1.1)

    def _play(self, client: Client) -> None:
        self._say(client, SOUND, command="play_sound")

    def _cancel(self, client: Client) -> None:
        recent = max(0, self.asked - MOST_LIVING)
        self._try(client, "cancel", id=f"r{self._dice.randrange(recent, self.asked + 1)}")

    def _interrupt(self, client: Client) -> None:
        deed = self._dice.choice(("cancel", "stop", "skip", "pause"))
        self._try(client, deed)
        if deed == "pause":
            self._try(client, "resume")

    def _look(self, client: Client) -> None:
        self._try(client, self._dice.choice(("status", "metrics", "health", "voices", "ping")))

    def _synthesize(self, client: Client) -> None:
        client.call_with_samples(
            "synthesize", timeout_s=SILENCE_S, text=self._new(), rate=self._rate
        )

    def _be_guest(self, _: Client) -> None:
        """A program that is started, says one thing, and ends."""
        name = f"guest{self.asked}" if self._dice.random() < 0.5 else ""
        with self._daemon.client(name) as guest:
            self._say(guest, self._new())
        self.ledger.forget(name)

    def _listen_in(self, _: Client) -> None:
        """A program that subscribes, and ends without having read much."""
        with self._daemon.client() as guest:
            guest.subscribe(*self._dice.choice(((), ("ended",), ("started", "word"))))


def _make_sound(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    wave = np.sin(np.arange(4000) * 2 * np.pi * 700 / 16_000) * np.linspace(0.5, 0, 4000)
    soundfile.write(path, wave, 16_000)
