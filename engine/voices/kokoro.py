"""Kokoro-82M: Chinese and English in one voice; a segment is one run of its network."""

import time
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.contract import Segment
from utterd.engine.runtimes.contract import Abandon, Runtime
from utterd.engine.voices import shape
from utterd.engine.voices.contract import Control, Controls, Timing
from utterd.engine.voices.kokoro_symbols import LONGEST, PAD
from utterd.engine.voices.numbered import numbered
from utterd.engine.voices.package import VoiceError, VoicePackage
from utterd.engine.voices.whole import WholeSpeech

DURATIONS = "/encoder/Clip_output_0"
PITCH = "pitch"
STYLE_WIDTH = 256
FRAME = 600
"""Samples of one frame of the durations."""

_NOTHING = np.zeros(0, np.float32)
_FASTEST, _SLOWEST = 3.0, 0.5


class Kokoro:
    """See `Voice`."""

    parallel = False

    def __init__(self, package: VoicePackage, speaker: str, runtime: Runtime, threads: int) -> None:
        manifest = package.manifest
        self.name = manifest.name
        self.sample_rate = manifest.sample_rate
        self.languages = manifest.languages
        self.speakers = manifest.speakers
        self.runtime = runtime.name
        symbols = package.path("symbols.json").read_bytes()
        self._symbols = msgspec.json.decode(symbols, type=dict[str, int])
        self._package = package
        self._speaker = speaker
        self._tables: dict[str, NDArray[np.float32]] = {}
        self._styles(speaker)
        self._graph = runtime.load(package.path("model.onnx"), threads)
        self._timed = DURATIONS in self._graph.outputs
        pitched = PITCH in self._graph.inputs
        self.controls: tuple[Control, ...] = ("rate", "pitch") if pitched else ("rate",)

    @property
    def network_ns(self) -> int:
        """See `Voice.network_ns`."""
        return self._graph.busy_ns

    def speak(self, segment: Segment, controls: Controls, abandon: Abandon) -> WholeSpeech:
        """Synthesise a segment; see `Voice.speak`."""
        tokens, place, skipped = numbered(segment.phonemes, self._symbols, self.name)
        pieces: list[NDArray[np.float32]] = []
        begins: list[int] = []
        length = 0
        for begin, end in split(len(tokens), [place[word.first] for word in segment.words]):
            piece, within = self._run(tokens[begin:end], controls, abandon)
            begins += [length + at for at in within.tolist()]
            length += len(piece)
            pieces.append(piece)
        samples = pieces[0] if len(pieces) == 1 else np.concatenate([*pieces, _NOTHING])
        begins.append(len(samples))
        timing = Timing(
            words=tuple(begins[place[word.first]] for word in segment.words),
            marks=tuple(begins[place[mark.first]] for mark in segment.marks),
            samples=len(samples),
        )
        return WholeSpeech(timing, time.monotonic_ns(), skipped, samples, self.sample_rate)

    def close(self) -> None:
        """Free the runtime."""
        self._graph.close()

    def _styles(self, speaker: str) -> NDArray[np.float32]:
        """A row of style for each number of symbols, read when a speaker first speaks."""
        if speaker not in self._tables:
            table = np.fromfile(self._package.path(f"speakers/{speaker}.bin"), "<f4")
            if not len(table) or len(table) % STYLE_WIDTH:
                raise VoiceError(f"voice {self.name}: the table of {speaker} has no whole rows")
            self._tables[speaker] = table.reshape(-1, STYLE_WIDTH)
        return self._tables[speaker]

    def _run(
        self, tokens: Sequence[int], controls: Controls, abandon: Abandon
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Trimmed samples of up to 510 symbols, and where each symbol begins in them."""
        styles = self._styles(controls.speaker or self._speaker)
        row = min(len(tokens), len(styles)) - 1
        feeds: dict[str, NDArray[np.generic]] = {
            "tokens": np.array([[PAD, *tokens, PAD]], np.int64),
            "style": styles[row : row + 1],
            "speed": np.array([min(_FASTEST, max(_SLOWEST, controls.rate))], np.float32),
        }
        if "pitch" in self.controls and controls.pitch != 1.0:
            feeds[PITCH] = np.array([controls.pitch], np.float32)
        outputs = ["audio", DURATIONS] if self._timed else ["audio"]
        audio, *durations = self._graph.run(outputs, feeds, abandon)
        samples, head = shape.trim(audio.ravel(), self.sample_rate)
        if durations:
            ends = np.cumsum(durations[0].ravel().astype(np.int64))[: len(tokens)] * FRAME - head
        else:
            ends = np.arange(len(tokens), dtype=np.int64) * len(samples) // len(tokens)
        return samples, np.clip(ends, 0, len(samples))


def split(length: int, cuts: Sequence[int]) -> list[tuple[int, int]]:
    """Cut `length` symbols into runs that fit the network, at words where there are any.

    Args:
        length: number of symbols.
        cuts: where words begin, ascending.
    """
    runs = []
    begin = 0
    while length - begin > LONGEST:
        fitting = [cut for cut in cuts if begin < cut <= begin + LONGEST]
        end = fitting[-1] if fitting else begin + LONGEST
        runs.append((begin, end))
        begin = end
    if length > begin:
        runs.append((begin, length))
    return runs
