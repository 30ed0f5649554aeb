"""What workers do next: speech goes first, samples for clients are made where there is time."""

import logging

from utterd.audio.ring import Ring
from utterd.daemon.synthesis import Desk
from utterd.daemon.way import Way
from utterd.daemon.workers import Workers
from utterd.engine import messages as engine

log = logging.getLogger("allotment")


class Allotment:
    """Gives workers what the scheduler and the desk have for them.

    Args:
        way: the utterances that are on their way to the speaker.
        desk: the jobs of samples.
        workers: who does it.
        ring: tells how far ahead of the speaker they are.
    """

    def __init__(self, way: Way, desk: Desk, workers: Workers, ring: Ring) -> None:
        self._way = way
        self._desk = desk
        self._workers = workers
        self._ring = ring

    def speak(self, voice: str, piece: engine.Say) -> None:
        """Give a worker a piece to speak; what else it does makes way, unless there is no hurry."""
        if self._ring.written[0] != piece.generation or not self._has_time(voice):
            for abandon in self._desk.make_way(voice):
                self._workers.send(voice, abandon)
        self._workers.send(voice, piece)

    def serve(self) -> None:
        """Give workers their next jobs of samples."""
        for voice in self._desk.wanted_voices():
            worker = self._workers.load(voice)
            if worker.ready is None or (self._way.needs(voice) and not self._has_time(voice)):
                continue
            while (job := self._desk.next_for(voice, worker.ready.sample_rate)) is not None:
                worker.child.send(job)

    def forget_unwanted(self) -> bool:
        """Make no samples for clients that are gone; whether there were any under way."""
        abandoned = self._desk.forget_unwanted()
        for voice, abandon in abandoned:
            self._workers.send(voice, abandon)
        if abandoned:
            log.info("samples are not wanted any more", extra={"jobs": len(abandoned)})
        return bool(abandoned)

    def _has_time(self, voice: str) -> bool:
        """Whether a worker that speaks can make samples beside: it is seconds ahead of the speaker.

        Only one that makes them in short chunks, and takes up what is to be heard between two.
        """
        ready = self._workers.by_voice[voice].ready
        is_ahead = 4 * self._ring.used >= self._ring.capacity
        return ready is not None and ready.parallel and is_ahead
