"""Voices in Piper's format: a VITS network that reads espeak-ng's phonemes."""

import bisect
import re
import time
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.contract import Segment, Skipped, Syllable
from utterd.engine.runtimes.contract import Abandon, Runtime
from utterd.engine.voices import espeak, shape
from utterd.engine.voices.contract import Control, Controls, Timing
from utterd.engine.voices.package import VoicePackage
from utterd.engine.voices.piper_config import read_config
from utterd.engine.voices.whole import WholeSpeech

DURATIONS = "utterd/frames"
RATE = "utterd/rate"
"""Tensors that `voices add` puts into the graph: frames of every phoneme, a factor on the speed."""

_CLAUSE = re.compile(r"([^,.;:!?，。；：！？、]*)([,.;:!?，。；：！？、]*)")
_ASCII_MARKS = str.maketrans("，。；：！？、", ",.;:!?,")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")


class Vits:
    """See `Voice`."""

    parallel = False

    def __init__(self, package: VoicePackage, speaker: str, runtime: Runtime, threads: int) -> None:
        manifest = package.manifest
        self.name = manifest.name
        self.sample_rate = manifest.sample_rate
        self.languages = manifest.languages
        self.speakers = manifest.speakers
        self.controls: tuple[Control, ...] = ("rate",)
        self.runtime = runtime.name
        self._config = read_config(package.path("config.json"))
        self._speaker = speaker
        espeak.phonemes("a", self._config.espeak.voice)  # what is missing is said now, not later
        # Optimised it runs no faster, and takes three times as long to load.
        self._graph = runtime.load(package.path("model.onnx"), threads, optimise=False)
        self._outputs = [self._graph.outputs[0]]
        self._timed = RATE in self._graph.inputs
        if self._timed:
            self._outputs.append(DURATIONS)

    @property
    def network_ns(self) -> int:
        """See `Voice.network_ns`."""
        return self._graph.busy_ns

    def speak(self, segment: Segment, controls: Controls, abandon: Abandon) -> WholeSpeech:
        """Synthesise a segment; see `Voice.speak`."""
        text, skipped = segment.text, []
        if "zh" not in self.languages:
            text = _HAN.sub(" ", text)
            skipped = _unspoken(segment.syllables, f"{self.name} has no Chinese")
        symbols, starts = spell(text, self._config.espeak.voice)
        known = self._config.phoneme_id_map
        skipped += [
            Skipped(segment.start, segment.end, symbol, f"no sound in {self.name}")
            for symbol in sorted(set(symbols) - known.keys())
        ]
        if starts:
            samples, begins = self._run(symbols, controls, abandon)
        else:
            samples, begins = np.zeros(0, np.float32), np.zeros(1, np.int64)
        align = _Alignment(segment, starts, begins)
        timing = Timing(
            words=tuple(align.sample(word.first) for word in segment.words),
            marks=tuple(align.sample(mark.first) for mark in segment.marks),
            samples=len(samples),
        )
        return WholeSpeech(timing, time.monotonic_ns(), tuple(skipped), samples, self.sample_rate)

    def close(self) -> None:
        """Free the runtime."""
        self._graph.close()

    def _run(
        self, symbols: Sequence[str], controls: Controls, abandon: Abandon
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Trimmed samples, and where each symbol (and the end) begins in them."""
        known = self._config.phoneme_id_map
        pad = known["_"]
        ids = [*known["^"], *pad]
        firsts = []
        for symbol in symbols:
            firsts.append(len(ids))
            if symbol in known:
                ids += [*known[symbol], *pad]
        firsts.append(len(ids))
        ids += known["$"]
        scales = self._config.inference
        length = scales.length_scale / (1.0 if self._timed else controls.rate)
        feeds: dict[str, NDArray[np.generic]] = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([scales.noise_scale, length, scales.noise_w], np.float32),
        }
        if self._timed:
            feeds[RATE] = np.array([controls.rate], np.float32)
        if "sid" in self._graph.inputs:
            speaker = controls.speaker or self._speaker
            feeds["sid"] = np.array([self._config.speaker_id_map.get(speaker, 0)], np.int64)
        audio, *frames = self._graph.run(self._outputs, feeds, abandon)
        samples, head = shape.trim(audio.ravel(), self.sample_rate)
        if frames:
            ends = np.concatenate([[0.0], np.cumsum(frames[0].ravel())])
            begins = (ends[firsts] * (audio.size / ends[-1])).astype(np.int64) - head
        else:
            begins = np.array(firsts, np.int64) * len(samples) // len(ids)
        return samples, np.clip(begins, 0, len(samples))


class _Alignment:
    """Where the front end's words lie among espeak's symbols.

    One for one where both count the same words; else by their share of the phonemes.
    """

    def __init__(self, segment: Segment, starts: Sequence[int], begins: NDArray[np.int64]) -> None:
        self._phonemes = max(1, len(segment.phonemes))
        self._firsts = [word.first for word in segment.words]
        self._starts = starts if len(starts) == len(segment.words) else None
        self._begins = begins

    def sample(self, phoneme: int) -> int:
        """Where phoneme `phoneme` of the segment begins."""
        if self._starts is not None:
            word = bisect.bisect_left(self._firsts, phoneme)
            symbol = self._starts[word] if word < len(self._starts) else len(self._begins) - 1
        else:
            symbol = phoneme * (len(self._begins) - 1) // self._phonemes
        return int(self._begins[symbol])


def _unspoken(syllables: Sequence[Syllable], reason: str) -> list[Skipped]:
    """Syllables in a row, each run reported as one."""
    runs: list[Skipped] = []
    for syllable in syllables:
        if runs and runs[-1].end == syllable.start:
            run = runs.pop()
            runs.append(Skipped(run.start, syllable.end, run.text + syllable.text, reason))
        else:
            runs.append(Skipped(syllable.start, syllable.end, syllable.text, reason))
    return runs


def spell(text: str, voice: str) -> tuple[list[str], list[int]]:
    """Phoneme symbols of a text, its marks among them, and where its words begin.

    Args:
        text: normalised.
        voice: espeak's name of a language.

    Raises:
        VoiceError: espeak-ng isn't installed, or doesn't know the voice.
    """
    symbols: list[str] = []
    starts: list[int] = []
    for clause, marks in _CLAUSE.findall(text):
        for word in espeak.phonemes(clause, voice).split() if clause.strip() else ():
            if symbols:
                symbols.append(" ")
            starts.append(len(symbols))
            # The network was trained on letters and their marks apart.
            symbols += unicodedata.normalize("NFD", word)
        if marks and symbols:
            symbols.append(marks[0].translate(_ASCII_MARKS))
    return symbols, starts
