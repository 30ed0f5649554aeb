"""`synthesize`: samples back to the client instead of sound.

Jobs wait here while their voice's worker is needed for speech, unless it is seconds ahead of the
speaker; a worker has several at once, which take turns (`engine/turns.py`). Those under way when
speech needs their worker make way, and go on from their last sample later; so do those whose worker
died.
"""

import itertools
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from utterd.daemon.protocol import ProtocolError, Synthesize
from utterd.engine import messages as engine

BASE = 1 << 62
"""Generations of jobs begin here: they never meet the fence, which counts utterances."""
AT_ONCE = 64
"""Jobs that one worker has under way."""


@dataclass(slots=True, eq=False)
class Job:
    """One request for samples."""

    command: Synthesize
    id: str
    voice: str
    speaker: str
    reply: Callable[[dict[str, object], bytes], None]
    """Sends a reply; may be called several times where the client asked for a stream."""
    received_ns: int
    is_wanted: Callable[[], bool] = lambda: True
    """Whether its client is still there to take the samples."""
    generation: int = 0
    sample_rate: int = 0
    chunks: list[bytes] = field(default_factory=list)
    skipped: list[engine.Skipped] = field(default_factory=list)
    received: int = 0
    """Samples that have come."""
    segment: engine.Segment | None = None
    """In which it goes on, after it made way or lost its worker."""
    retries: int = 0
    first_ns: int = 0


class Desk:
    """The jobs.

    Args:
        max_waiting: more are refused with `queue_full`.
    """

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._jobs: dict[int, Job] = {}
        self._waiting: deque[Job] = deque()
        self._busy: defaultdict[str, list[Job]] = defaultdict(list)
        self._next = BASE

    def add(self, job: Job) -> None:
        """Take a job.

        Raises:
            ProtocolError: `queue_full`, `bad_request` for an empty text.
        """
        if not job.command.text.strip():
            raise ProtocolError("bad_request", "the text is empty", "text")
        if len(self._waiting) >= self._max_waiting:
            raise ProtocolError(
                "queue_full", f"{len(self._waiting)} jobs are waiting", retry_after_ms=500
            )
        self._waiting.append(job)

    @property
    def is_idle(self) -> bool:
        """Whether no job waits or is under way."""
        return not self._waiting and not any(self._busy.values())

    def wanted_voices(self) -> set[str]:
        """Voices that jobs wait for."""
        return {job.voice for job in self._waiting}

    def needs(self, voice: str) -> bool:
        """Whether a job of this voice waits or is under way."""
        return bool(self._busy[voice]) or voice in self.wanted_voices()

    def next_for(self, voice: str, sample_rate: int) -> engine.Say | None:
        """A worker's next job; None if it has enough already, or there is none."""
        if len(self._busy[voice]) >= AT_ONCE:
            return None
        job = next((job for job in self._waiting if job.voice == voice), None)
        if job is None:
            return None
        self._waiting.remove(job)
        self._next += 1
        job.generation = self._next  # a new one each time: nothing of an earlier start is believed
        self._busy[voice].append(job)
        self._jobs[job.generation] = job
        job.sample_rate = sample_rate
        command = job.command
        return engine.Say(
            generation=job.generation,
            utterance=job.id,
            text=command.text,
            to="daemon",
            begin=job.segment.start if job.segment else 0,
            position=job.segment.position if job.segment else 0,
            written=job.received,
            speaker=job.speaker,
            language=command.language,
            rate=command.rate,
            pitch=command.pitch,
            volume=command.volume,
            format=command.format,
        )

    def worker_said(self, message: engine.FromWorker, now_ns: int) -> None:
        """Take a message about a job."""
        job = self._jobs.get(getattr(message, "generation", 0))
        if job is None:
            return
        match message:
            case engine.Pcm():
                job.first_ns = job.first_ns or now_ns
                job.received = message.position + len(message.data) // 4
                samples = encode(message.data, job.command.encoding)
                if job.command.stream:
                    job.reply(self._head(job, position=message.position, more=True), samples)
                else:
                    job.chunks.append(samples)
            case engine.Segment():
                if job.segment is None or message.position > job.segment.position:
                    job.skipped += message.skipped
                job.segment = message
            case engine.Finished():
                self._forget(job)
                head = self._head(
                    job,
                    more=False,
                    samples=message.samples,
                    synthesis_ms=round(message.synthesis_ms, 3),
                    first_pcm_ms=round(((job.first_ns or now_ns) - job.received_ns) / 1e6, 3),
                    skipped=[s.text for s in job.skipped],
                )
                job.reply(head, b"".join(job.chunks))
            case engine.Failed():
                self._fail(job, message.code, message.message)

    def make_way(self, voice: str) -> list[engine.Abandon]:
        """Let speech have the worker: the messages to send first, one for each of its jobs."""
        jobs = list(self._busy[voice])
        for job in reversed(jobs):
            self._forget(job)
            self._waiting.appendleft(job)
        return [engine.Abandon(generation=job.generation) for job in jobs]

    def forget_unwanted(self) -> list[tuple[str, engine.Abandon]]:
        """Drop the jobs whose clients have gone; gives what to tell the workers that make them."""
        for job in [job for job in self._waiting if not job.is_wanted()]:
            self._waiting.remove(job)
        gone = [job for job in self._jobs.values() if not job.is_wanted()]
        for job in gone:
            self._forget(job)
        return [(job.voice, engine.Abandon(generation=job.generation)) for job in gone]

    def worker_lost(self, voice: str) -> None:
        """A worker died: its jobs go on with the next one, once."""
        for job in reversed(list(self._busy[voice])):
            if job.retries:
                self._fail(job, "internal", f"the voice {voice} died while speaking this")
                continue
            job.retries += 1
            self._forget(job)
            self._waiting.appendleft(job)

    def voice_broken(self, voice: str, message: str) -> None:
        """A voice can't be loaded, or its worker gave up: what needs it fails."""
        for job in list(self._busy[voice]):
            self._fail(job, "unavailable", message)
        for job in [job for job in self._waiting if job.voice == voice]:
            self._waiting.remove(job)
            self._fail(job, "unavailable", message)

    def close(self) -> None:
        """The daemon ends: refuse what is left."""
        for job in [*self._waiting, *itertools.chain.from_iterable(self._busy.values())]:
            self._fail(job, "unavailable", "the daemon is shutting down")
        self._waiting.clear()

    def _head(self, job: Job, **fields: object) -> dict[str, object]:
        return {
            "ok": True,
            "id": job.id,
            "sample_rate": job.sample_rate,
            "encoding": job.command.encoding,
            "channels": 1,
        } | fields

    def _fail(self, job: Job, code: str, message: str) -> None:
        self._forget(job)
        job.reply({"ok": False, "error": {"code": code, "message": message}}, b"")

    def _forget(self, job: Job) -> None:
        self._jobs.pop(job.generation, None)
        if job in self._busy[job.voice]:
            self._busy[job.voice].remove(job)


def encode(data: bytes, encoding: str) -> bytes:
    """Float32 samples as the client wants them, little-endian."""
    if encoding == "f32":
        return data
    samples = np.frombuffer(data, dtype="<f4")
    scaled = np.clip(samples, -1.0, 1.0) * np.float32(32767.0)
    return bytes(scaled.round().astype("<i2").tobytes())
