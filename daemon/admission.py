"""Whether a new utterance may enter, and what it does to those that are there."""

from typing import Literal, NamedTuple

from utterd.daemon.cutting import Cutting
from utterd.daemon.line import Line
from utterd.daemon.precedence import Effect, effect_on
from utterd.daemon.protocol import ProtocolError, Speak
from utterd.daemon.utterance import ON_ITS_WAY, Priority, Utterance


class Leaving(NamedTuple):
    """One that leaves for an arrival."""

    utterance: Utterance
    reason: Literal["superseded", "flushed", "replaced"]


class Admission:
    """The limits, and the rules of arrival.

    Args:
        line: everything that lives.
        cutting: cuts what has to make way.
        max_waiting: utterances that may wait; more are refused.
        max_characters: of one text.
    """

    def __init__(self, line: Line, cutting: Cutting, max_waiting: int, max_characters: int) -> None:
        self._line = line
        self._cutting = cutting
        self._max_waiting = max_waiting
        self._max_characters = max_characters

    def check_text(self, command: Speak) -> None:
        """Refuse a text that can't be spoken.

        Raises:
            ProtocolError: `bad_request`, `too_long`.
        """
        if not command.more and not command.text.strip():
            raise ProtocolError("bad_request", "the text is empty", "text")
        if len(command.text) > self._max_characters:
            raise ProtocolError(
                "too_long",
                f"the text has {len(command.text)} characters; "
                f"at most {self._max_characters} are spoken at once",
                "text",
            )
        if command.more and command.format != "plain":
            raise ProtocolError("bad_request", "only plain text can arrive in pieces", "more")

    def check_more(self, utterance: Utterance, text: str) -> None:
        """Refuse an addition to a text.

        Raises:
            ProtocolError: `too_long`.
        """
        if len(utterance.text) + len(text) > self._max_characters:
            raise ProtocolError(
                "too_long", f"the text would exceed {self._max_characters} characters", "text"
            )

    def check_room(self, utterance: Utterance) -> list[Leaving]:
        """Refuse an utterance for which there is no room; gives those that leave for it.

        Raises:
            ProtocolError: `bad_request` for an id that lives, `queue_full` (with
                `retry_after_ms`).
        """
        if utterance.key in self._line.known:
            raise ProtocolError("bad_request", f"the id {utterance.id!r} is in use", "id")
        superseded = self._superseded_by(utterance)
        leaving = [Leaving(other, "superseded") for other in superseded]
        reason: Literal["flushed", "replaced"] = (
            "flushed" if utterance.command.queue == "flush" else "replaced"
        )
        leaving += [
            Leaving(other, reason)
            for other in self._flushed_by(utterance)
            if other not in superseded
        ]
        waiting = self._line.waiting
        freed = sum(other in waiting for other, _ in leaving)
        # An important one passes where others no longer do, if only so far.
        important = utterance.priority is Priority.important
        if len(waiting) - freed >= self._max_waiting * (2 if important else 1):
            raise ProtocolError(
                "queue_full",
                f"{len(waiting)} utterances are waiting",
                retry_after_ms=self._retry_after_ms(),
            )
        return leaving

    def let_go(self, leaving: list[Leaving], now_ns: int) -> None:
        """End those that leave."""
        for other, reason in leaving:
            # What was displaced was heard in part already.
            if reason == "superseded" and not other.started:
                self._cutting.drop(other, reason, now_ns)
            else:
                self._cutting.cancel(other, reason, now_ns)

    def make_way(self, utterance: Utterance, now_ns: int) -> None:
        """Let a new utterance act on those that are there, by the table of precedence."""
        may_be_dropped = utterance.priority is Priority.notification
        for other in reversed(self._line.living):
            on_way, sounds = other.state in ON_ITS_WAY, self._line.sounds_next(other)
            effect = effect_on(utterance.priority, other.priority, sounds=sounds)
            may_be_cut = other.command.interruptible
            # What is ahead in the ring only waits there, and must not keep a higher one waiting.
            is_passed = not sounds and utterance.priority < other.priority
            displaces = effect is Effect.DISPLACE or (is_passed and not may_be_dropped)
            if effect is Effect.CANCEL:
                if may_be_cut:
                    self._cutting.cancel(other, "superseded", now_ns)
            elif on_way and displaces and (may_be_cut or not sounds):
                # Nothing of what only waits is cut; left there, it would overtake those before it.
                self._cutting.displace(other, "displaced", now_ns)

    def _superseded_by(self, utterance: Utterance) -> list[Utterance]:
        """Utterances with the same key that wait, be it in the ring."""
        key = utterance.command.key
        return [
            other
            for other in self._line.living
            if key
            and not self._line.sounds_next(other)
            and other.client == utterance.client
            and other.command.key == key
        ]

    def _flushed_by(self, utterance: Utterance) -> list[Utterance]:
        """What `queue` flush or replace cancels."""
        if utterance.command.queue == "flush":
            pool = self._line.living
        elif utterance.command.queue == "replace":
            pool = self._line.way.on_way[:1]
        else:
            return []
        return [
            other
            for other in pool
            if other.client == utterance.client and other.command.interruptible
        ]

    def _retry_after_ms(self) -> int:
        """A guess: the time that the text in front takes to speak, at 200 ms a character."""
        front = self._line.living[0]
        return min(10_000, max(200, int(len(front.text) * 200 / front.command.rate)))
