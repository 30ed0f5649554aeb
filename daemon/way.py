"""The way to the speaker: utterances that a worker writes to the ring, or that wait in it."""

from dataclasses import dataclass, field

from utterd.daemon.instructions import Instruction, Send
from utterd.daemon.utterance import ON_ITS_WAY, Utterance
from utterd.engine import messages as engine
from utterd.engine.frontend.stream import Piece

REVOKED_SLOTS = 256
"""Generations in a row of which the ring remembers whether they are revoked."""
LOOK_AHEAD = 4
"""Utterances that may be in the ring or on their way to it at once."""
RETRIES = 1
"""How often a text is tried again after its worker died speaking it and came no further."""


@dataclass(slots=True)
class Way:
    """Who writes, and who has been written.

    Args:
        out: gets the instructions.
    """

    out: list[Instruction]
    on_way: list[Utterance] = field(default_factory=list)
    """By generation: the first one sounds, or will next."""
    rates: dict[str, int] = field(default_factory=dict)
    """Sample rate in Hz of each voice whose worker is ready."""
    _generation: int = 0
    _writing: dict[int, Utterance] = field(default_factory=dict)
    """Generations that their worker has not reported finished or abandoned."""
    _orphans: list[Utterance] = field(default_factory=list)
    """On their way, but their worker died before all was written."""

    def takes(self, utterance: Utterance) -> bool:
        """Whether an utterance may begin.

        The ring has one writer: the one before must have finished, or be this one's own worker
        with nothing left to write. A worker abandons a dropped generation at its next chunk and
        then takes its next message, so its own dropped work need not be waited for.
        """
        if len(self.on_way) >= LOOK_AHEAD or self._generation + 1 - self.fence >= REVOKED_SLOTS:
            return False
        return all(
            other.voice == utterance.voice
            and (other.generation != generation or other.state not in ON_ITS_WAY)
            for generation, other in self._writing.items()
        )

    @property
    def fence(self) -> int:
        """The lowest generation that may still sound."""
        return self.on_way[0].generation if self.on_way else self._generation + 1

    def begin(self, utterance: Utterance) -> None:
        """Give an utterance to its worker as a new generation."""
        self._generation += 1
        utterance.begin(self._generation)
        utterance.sample_rate = self.rates[utterance.voice]
        self.on_way.append(utterance)
        self._writing[utterance.generation] = utterance
        self.feed(utterance)

    def feed(self, utterance: Utterance) -> None:
        """Send the worker the pieces of text that it has not yet got."""
        if utterance.state not in ON_ITS_WAY or utterance in self._orphans:
            return
        command = utterance.command
        pieces = utterance.pieces[utterance.fed :]
        if not pieces and utterance.closed and not utterance.final_sent:
            pieces = [Piece("", len(utterance.text))]
        for number, piece in enumerate(pieces, start=1):
            final = utterance.closed and number == len(pieces)
            utterance.final_sent = utterance.final_sent or final
            message = engine.Say(
                generation=utterance.generation,
                utterance=utterance.id,
                text=piece.text,
                offset=piece.offset,
                final=final,
                begin=utterance.speak_from,
                position=utterance.restart_position,
                written=utterance.written_to,
                speaker=utterance.speaker,
                language=command.language,
                rate=command.rate,
                pitch=command.pitch,
                volume=command.volume,
                format=command.format,
            )
            self.out.append(Send(utterance.voice, message))
        utterance.fed = len(utterance.pieces)

    def current(self, generation: int) -> Utterance | None:
        """The utterance on its way as this generation, if it has not been cut."""
        for utterance in self.on_way:
            if utterance.generation == generation:
                return utterance
        return None

    def written(self, generation: int) -> None:
        """Its worker has finished or abandoned a generation."""
        self._writing.pop(generation, None)

    def leave(self, utterance: Utterance) -> None:
        """An utterance was heard to its end, or was cut."""
        self.on_way.remove(utterance)
        if utterance in self._orphans:
            self._orphans.remove(utterance)
            self._writing.pop(utterance.generation, None)

    def writes(self, utterance: Utterance) -> bool:
        """Whether its worker still has something of it to write."""
        return self._writing.get(utterance.generation) is utterance

    def needs(self, voice: str) -> bool:
        """Whether a voice's worker has something to write."""
        return any(utterance.voice == voice for utterance in self._writing.values())

    def worker_ready(self, voice: str, sample_rate: int) -> None:
        """A voice can speak (again): it takes up what its last worker left."""
        self.rates[voice] = sample_rate
        for utterance in [u for u in self._orphans if u.voice == voice]:
            self._orphans.remove(utterance)
            self.feed(utterance)

    def worker_lost(self, voice: str, written: tuple[int, int]) -> list[Utterance]:
        """A worker died; what it had begun goes on with the next one.

        Args:
            voice: its voice.
            written: generation and position up to which the ring holds samples.

        Returns:
            Utterances that are given up, having lost a worker before.
        """
        self.rates.pop(voice, None)
        given_up = []
        for generation, utterance in list(self._writing.items()):
            if utterance.voice != voice or utterance in self._orphans:
                continue
            if utterance.generation != generation or utterance.state not in ON_ITS_WAY:
                del self._writing[generation]
                continue
            position = written[1] if written[0] == generation else 0
            utterance.go_on(position)
            self._orphans.append(utterance)
            # A text that kills its worker does so at the same place again.
            utterance.retries = 1 if position > utterance.lost_at else utterance.retries + 1
            utterance.lost_at = position
            if utterance.retries > RETRIES:
                given_up.append(utterance)
        return given_up
