"""The hot path: a piece of text becomes samples, segment after segment.

    read a passage -> for each segment: speak -> write its chunks -> write its pause

Everything of one generation is kept in a `Generation`; the position counts its samples.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from utterd.engine import messages, sounds
from utterd.engine.frontend import contract as text
from utterd.engine.frontend.reader import Reader
from utterd.engine.generation import Generation, Stages, State, describe, silent, wordless
from utterd.engine.messages import Say
from utterd.engine.outlets import Outlet
from utterd.engine.passages import passages
from utterd.engine.runtimes.contract import AbandonedError, RuntimeFailedError
from utterd.engine.voices.contract import Controls, Voice
from utterd.engine.voices.package import VoiceError

log = logging.getLogger("engine")

Send = Callable[[msgspec.Struct], object]
Code = Literal["bad_request", "internal", "unavailable"]

_REMEMBERED = 64
_LONGEST_REASON = 1000
"""Characters: a reason may quote what the client sent, which need not fit into a message."""
_SLOWEST, _FASTEST = 0.5, 3.0


class BadRequestError(Exception):
    """What was asked for can't be spoken, however often it is tried."""


class Synthesizer:
    """Speaks pieces of text.

    One thread at a time is in it, but where the voice's networks run.

    Args:
        voice: loaded.
        reader: the front end.
        outlets: the ways to the player and to the daemon.
        send: passes a message to the daemon.
        tick: called with every chunk, to show that it goes on.
    """

    def __init__(
        self,
        voice: Voice,
        reader: Reader,
        outlets: Mapping[Literal["ring", "daemon"], Outlet],
        send: Send,
        tick: Callable[[], None],
    ) -> None:
        self._voice = voice
        self._reader = reader
        self._outlets = outlets
        self._send = send
        self._tick = tick
        self._generations: dict[int, Generation] = {}

    def steps(self, piece: Say, received_ns: int) -> Iterator[int]:
        """Speak one piece chunk by chunk. Whatever goes wrong fails its generation, and only that.

        Yields:
            The samples of its generation so far; between two chunks others may be spoken.

        Raises:
            EOFError: the daemon is gone.
        """
        generation = self._generation(piece)
        if generation.state is not State.OPEN:
            return
        chunks = self._speak(generation, piece, Stages(received_ns, time.monotonic_ns()))
        while self._step(generation, chunks, final=piece.final, utterance=piece.utterance):
            yield generation.position

    def _step(
        self, generation: Generation, chunks: Iterator[None], *, final: bool, utterance: str
    ) -> bool:
        """Do one chunk; False if there was none left, or it was left or failed."""
        began, goes_on = time.monotonic_ns(), False
        network, waited = self._voice.network_ns, generation.waited_ns
        end = State.OPEN
        problem: tuple[Code, str] = ("internal", "")
        try:
            next(chunks)
            goes_on = True
        except StopIteration:
            end = State.FINISHED if final else State.OPEN
        except EOFError:
            raise
        except AbandonedError:
            end = State.ABANDONED
        except BadRequestError as error:
            end, problem = State.FAILED, ("bad_request", str(error))
        except (VoiceError, RuntimeFailedError) as error:
            end, problem = State.FAILED, ("unavailable", str(error))
        except Exception as error:
            log.exception("utterance %r failed", utterance)
            end, problem = State.FAILED, ("internal", f"{type(error).__name__}: {error}")
        network = self._voice.network_ns - network
        waited = generation.waited_ns - waited
        generation.network_ns += network
        generation.other_ns += time.monotonic_ns() - began - network - waited
        if end is not State.OPEN:
            self._end(generation, end, *problem)
        return goes_on

    def sweep(self, is_under_way: Callable[[int], bool]) -> None:
        """Report the generations that were dropped between their pieces.

        Args:
            is_under_way: whether a piece of a generation is; it ends itself.
        """
        for number, generation in self._generations.items():
            if (
                generation.state is State.OPEN
                and generation.outlet.is_dropped(number)
                and not is_under_way(number)
            ):
                self._end(generation, State.ABANDONED)

    @property
    def waits(self) -> bool:
        """Whether a generation is open, so that `sweep` has something to look at."""
        return any(g.state is State.OPEN for g in self._generations.values())

    def _generation(self, piece: Say) -> Generation:
        known = self._generations.get(piece.generation)
        if known is None:
            outlet = self._outlets[piece.to]
            known = Generation(piece.generation, outlet, piece.position, piece.written)
            self._generations[piece.generation] = known
            for number in list(self._generations)[:-_REMEMBERED]:
                if self._generations[number].state is not State.OPEN:
                    del self._generations[number]
        return known

    def _speak(self, generation: Generation, piece: Say, stages: Stages) -> Iterator[None]:
        self._check_speaker(piece.speaker)
        if piece.format == "sound":
            yield from self._play(generation, piece, stages)
            return
        ended = False
        for segment, last in self._segments(generation, piece, stages):
            yield from self._segment(generation, piece, segment, last, stages)
            ended = last
        if piece.final and not ended:
            self._nothing_more(generation, piece.offset + len(piece.text))

    def _segments(
        self, generation: Generation, piece: Say, stages: Stages
    ) -> Iterator[tuple[text.Segment, bool]]:
        """The segments to speak, each with whether it is the last of its generation."""
        markup: Literal["plain", "ssml"] = "ssml" if piece.format == "ssml" else "plain"
        cut = passages(piece.text) if markup == "plain" else [(0, piece.text)]
        language = piece.language
        if not language and len(self._voice.languages) == 1:
            language = self._voice.languages[0]
        for number, (offset, passage) in enumerate(cut, start=1):
            self._check(generation)
            try:
                analysis = self._reader.analyse(
                    passage, offset=piece.offset + offset, language=language, format=markup
                )
            except ValueError as error:
                raise BadRequestError(f"the text can't be read: {error}") from None
            for speaker in {segment.speaker for segment in analysis.segments}:
                self._check_speaker(speaker)
            stages.phonemes = stages.phonemes or time.monotonic_ns()
            generation.skipped += [s for s in analysis.skipped if s.end > piece.begin]
            segments = [s for s in analysis.segments if s.end > piece.begin]
            final = piece.final and number == len(cut)
            for index, segment in enumerate(segments, start=1):
                yield segment, final and index == len(segments)

    def _segment(
        self,
        generation: Generation,
        piece: Say,
        segment: text.Segment,
        last: bool,
        stages: Stages,
    ) -> Iterator[None]:
        self._check(generation)
        rate = min(_FASTEST, max(_SLOWEST, piece.rate * segment.rate))
        if not segment.phonemes and not segment.text:
            yield from self._silence(generation, segment, rate, last)
            return
        controls = Controls(rate, piece.pitch * segment.pitch, segment.speaker or piece.speaker)
        speech = self._voice.speak(segment, controls, lambda: self._is_dropped(generation))
        stages.encoded = stages.encoded or speech.encoded_ns
        pause = 0 if last else round(segment.pause_ms * self._voice.sample_rate / 1000 / rate)

        def tell() -> None:
            self._send(describe(generation, segment, speech, begin=begin, pause=pause, last=last))

        begin, made, told = generation.position, 0, False
        volume = np.float32(piece.volume * segment.volume)
        for chunk in speech.chunks():
            stages.first_chunk = stages.first_chunk or time.monotonic_ns()
            made += len(chunk)
            if told := speech.settled and made == speech.timing.samples:
                tell()
            samples = chunk if volume == 1.0 else chunk * volume
            self._write(generation, samples, last=last and told)
            self._first_audio(generation, stages)
            yield
        if not told:  # nothing of it has a sound
            tell()
        if pause or (last and not speech.timing.samples):
            yield from self._write_silence(generation, pause, last=last)

    def _silence(
        self, generation: Generation, segment: text.Segment, rate: float, last: bool
    ) -> Iterator[None]:
        """Write a segment without words: marks at its beginning, and a break."""
        samples = round(segment.pause_ms * self._voice.sample_rate / 1000 / rate)
        self._send(silent(generation, segment, samples, last=last))
        yield from self._write_silence(generation, samples, last=last)

    def _write_silence(self, generation: Generation, samples: int, *, last: bool) -> Iterator[None]:
        """In chunks as short as those of speech: a break may last minutes."""
        chunk = self._voice.sample_rate // 10
        for begin in range(0, max(1, samples), chunk):
            length = min(chunk, samples - begin)
            ends = last and begin + chunk >= samples
            self._write(generation, np.zeros(length, np.float32), last=ends)
            yield

    def _play(self, generation: Generation, piece: Say, stages: Stages) -> Iterator[None]:
        """Write a sound file, in chunks short enough to notice when it is dropped."""
        rate = self._voice.sample_rate
        try:
            samples = sounds.read(Path(piece.text), rate) * np.float32(piece.volume)
        except sounds.SoundError as error:
            raise BadRequestError(str(error)) from None
        stages.phonemes = stages.encoded = stages.first_chunk = time.monotonic_ns()
        end = piece.offset + len(piece.text)
        self._send(wordless(generation, piece.offset, end, len(samples)))
        for begin in range(0, max(1, len(samples)), rate // 10):
            chunk = samples[begin : begin + rate // 10]
            self._write(generation, chunk, last=begin + rate // 10 >= len(samples))
            self._first_audio(generation, stages)
            yield

    def _nothing_more(self, generation: Generation, end: int) -> None:
        """End a generation behind its last sample: its last piece held nothing to speak."""
        self._send(wordless(generation, end, end, 0))
        self._write(generation, np.zeros(0, np.float32), last=True)

    def _write(self, generation: Generation, samples: NDArray[np.float32], *, last: bool) -> None:
        """Pass on what isn't in the ring yet, and move the position on."""
        known = max(0, generation.written - generation.position)
        fresh = samples[known:]
        at = generation.position + len(samples) - len(fresh)
        outlet = generation.outlet
        if len(fresh) or last:
            waited = outlet.waited_ns
            kept = outlet.write(generation.number, at, fresh, last=last)
            generation.waited_ns += outlet.waited_ns - waited
            if not kept:
                raise AbandonedError
        generation.position += len(samples)
        generation.written = max(generation.written, generation.position)
        self._tick()

    def _first_audio(self, generation: Generation, stages: Stages) -> None:
        if not generation.sounded and generation.written == generation.position:
            generation.sounded = True
            self._send(
                messages.FirstAudio(
                    generation=generation.number,
                    received_ns=stages.received,
                    started_synthesis_ns=stages.started_synthesis,
                    phonemes_ns=stages.phonemes,
                    encoded_ns=stages.encoded,
                    first_chunk_ns=stages.first_chunk,
                    first_written_ns=time.monotonic_ns(),
                )
            )

    def _end(
        self, generation: Generation, state: State, code: Code = "internal", why: str = ""
    ) -> None:
        generation.end(state)
        number, samples = generation.number, generation.position
        match state:
            case State.FINISHED:
                network, other = generation.network_ns / 1e6, generation.other_ns / 1e6
                self._send(messages.Finished(number, samples, network, other))
            case State.ABANDONED:
                self._send(messages.Abandoned(number, samples))
            case _:
                self._send(messages.Failed(number, code, why[:_LONGEST_REASON], samples))

    def _check_speaker(self, speaker: str) -> None:
        if speaker and speaker not in self._voice.speakers:
            raise BadRequestError(f"voice {self._voice.name} has no speaker {speaker!r}")

    def _is_dropped(self, generation: Generation) -> bool:
        return generation.outlet.is_dropped(generation.number)

    def _check(self, generation: Generation) -> None:
        if self._is_dropped(generation):
            raise AbandonedError
