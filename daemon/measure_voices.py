"""`utterd voices benchmark`: what each installed voice does on this machine.

Each voice is loaded in a worker of its own, as the daemon loads it, and speaks into a ring that
nobody plays, one voice after the other.
"""

import os
import select
import statistics
import time
from collections.abc import Callable

from utterd.audio.ring import Ring
from utterd.daemon import qualities
from utterd.daemon.config import Config
from utterd.daemon.qualities import Benchmark, Measured
from utterd.daemon.voices import Voices
from utterd.engine.client import WorkerProcess
from utterd.engine.messages import (
    Alive,
    Broken,
    Configure,
    Failed,
    Finished,
    FirstAudio,
    FromWorker,
    Ready,
    Say,
    Shutdown,
)
from utterd.engine.voices.package import VoicePackage

SENTENCES = {
    "zh": (
        "好的，已经打开。",
        "前方路口右转，然后直行两公里。",
        "正在为你导航到最近的加油站，大约需要十分钟。",
    ),
    "en": (
        "Okay, it is on.",
        "Turn right, then go on for two miles.",
        "The nearest petrol station is about ten minutes away from here.",
    ),
}
ROUNDS = 3

Progress = Callable[[str, float], None]


class MeasureError(Exception):
    """A voice can't be measured; one line that says why."""


def measure(
    config: Config, voices: Voices, progress: Progress, leave_out: Callable[[str], None]
) -> Benchmark:
    """Measure all installed voices and choose among them.

    Args:
        config: threads and time limits hold as for the daemon.
        voices: the installed ones.
        progress: called with what is done, and the fraction that is done.
        leave_out: called with a line about each voice that can't speak.

    Raises:
        MeasureError: no voice can speak.
    """
    installed = voices.installed()
    for name, problem in voices.problems().items():
        leave_out(f"the voice {name} can't be used: {problem}")
    load = os.getloadavg()[0]
    found, left_out = [], {}
    for number, (name, voice) in enumerate(installed.items()):

        def step(fraction: float, name: str = name, number: int = number) -> None:
            progress(f"measuring {name}", (number + fraction) / len(installed))

        step(0.0)
        try:
            with _Bench(voice, config) as bench:
                found.append(bench.measure(step))
        except MeasureError as error:
            left_out[name] = qualities.identity(voice)
            leave_out(str(error))
    if not found:
        raise MeasureError("no voice can speak")
    progress("done", 1.0)
    chosen = qualities.choose(found)
    return Benchmark(
        qualities.FORMAT, qualities.machine(), time.time(), load, found, chosen, left_out
    )


class _Bench:
    """One voice in a worker; its samples are thrown away as soon as they are there."""

    def __init__(self, voice: VoicePackage, config: Config) -> None:
        self._voice = voice
        self._name = voice.folder.name
        self._patience_s = config.engine.ready_timeout_s
        self._began = time.monotonic()
        self._generation = 0
        self._rss_bytes = 0
        self._ring = Ring.create()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._worker = WorkerProcess(self._ring.fd, self._wake)
        self._worker.send(Configure(voice_dir=str(voice.folder), threads=config.engine.threads))

    def __enter__(self) -> "_Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.send(Shutdown())
        self._worker.close(1.0)
        os.close(self._wake)
        self._ring.close()

    def measure(self, step: Callable[[float], None]) -> Measured:
        """What the voice does; `step` is called with the fraction that is done."""
        (ready,) = [m for m in self._until(Ready) if isinstance(m, Ready)]
        ready_s = time.monotonic() - self._began
        sentences = SENTENCES["zh" if "zh" in ready.languages else "en"]
        first_ms, taken_ms, spoken_s = [], 0.0, 0.0
        for run in range(ROUNDS):
            for sentence in sentences:
                said = self._say(sentence)
                first = next((m for m in said if isinstance(m, FirstAudio)), None)
                (end,) = [m for m in said if isinstance(m, Finished)]
                if first is None:
                    raise MeasureError(f"the voice {self._name} says nothing: {sentence}")
                first_ms.append((first.first_written_ns - first.received_ns) / 1e6)
                taken_ms += end.synthesis_ms + end.overhead_ms
                spoken_s += end.samples / ready.sample_rate
            step((run + 1) / ROUNDS)
        self._until(Alive)
        return Measured(
            name=self._name,
            identity=qualities.identity(self._voice),
            kind=self._voice.manifest.kind,
            languages=list(self._voice.manifest.languages),
            runtime=ready.runtime,
            ready_s=round(ready_s, 2),
            first_ms=round(statistics.median(first_ms), 2),
            real_time_factor=round(taken_ms / 1000 / spoken_s, 4),
            rss_bytes=self._rss_bytes,
        )

    def _say(self, text: str) -> list[FromWorker]:
        self._generation += 1
        self._worker.send(Say(generation=self._generation, utterance="benchmark", text=text))
        return self._until(Finished)

    def _until(self, kind: type[FromWorker]) -> list[FromWorker]:
        """All messages up to the first of a kind."""
        said: list[FromWorker] = []
        end = time.monotonic() + self._patience_s
        while not any(isinstance(message, kind) for message in said):
            if time.monotonic() > end:
                raise MeasureError(f"the voice {self._name} takes more than {self._patience_s} s")
            if select.select([self._worker], [], [], 0.02)[0]:
                try:
                    said += self._worker.receive()
                except EOFError as error:
                    raise MeasureError(f"the voice {self._name} can't speak: {error}") from None
            self._ring.advance(self._ring.head, self._ring.head)
            for message in said:
                if isinstance(message, Alive):
                    self._rss_bytes = message.rss_bytes
                elif isinstance(message, Broken | Failed):
                    raise MeasureError(f"the voice {self._name} can't speak: {message.message}")
        return said


def table(found: Benchmark) -> list[str]:
    """The figures and the choice, as lines to print."""
    lines = [f"{'VOICE':<20}{'FIRST SOUND':>12}{'RTF':>9}{'MEMORY':>10}{'READY':>9}   IS"]
    for one in found.voices:
        names = ", ".join(q for q in qualities.QUALITIES if found.chosen.get(q) == one.name)
        lines.append(
            f"{one.name:<20}{one.first_ms:>9.1f} ms{one.real_time_factor:>9.3f}"
            f"{one.rss_bytes / 1e6:>7.0f} MB{one.ready_s:>7.1f} s   {names or '-'}"
        )
    return lines
