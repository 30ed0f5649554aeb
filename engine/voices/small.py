"""The small voice of our own: phonemes to sound in one pass, chunk by chunk.

Its package holds `encode.onnx` (phoneme ids to vectors, durations, and a contour of F0, voicing
and energy), `decode.onnx` (frames to samples, with carried state) and `network.json`.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.contract import Segment, Skipped
from utterd.engine.runtimes.contract import Abandon, Runtime
from utterd.engine.voices import shape, small_frames
from utterd.engine.voices.contract import Control, Controls, Timing
from utterd.engine.voices.numbered import numbered
from utterd.engine.voices.package import VoiceError, VoicePackage
from utterd.engine.voices.small_frames import HOP
from utterd.engine.voices.small_stream import Decoder, Stream

PAD = 0
_FIRST_BLOCKS = 6
"""75 ms."""
_MOST_BLOCKS = 64
_EDGE_FRAMES = 1.0
"""Longest that the pads at the ends of a segment may sound, in frames."""
_SLOWEST, _FASTEST = 0.5, 3.0
_LOWEST, _HIGHEST = 0.5, 2.0
_EDGE_SAMPLES = small_frames.SAMPLE_RATE // 100
_FADE_SAMPLES = small_frames.SAMPLE_RATE // 200


class Network(msgspec.Struct, frozen=True):
    """`network.json`: what the graphs do not tell by themselves."""

    symbols: dict[str, int]
    hidden: int
    """Channels of a phoneme's vector."""
    state: int
    """Channels of the decoder's states."""


class Small:
    """See `Voice`."""

    controls: tuple[Control, ...] = ("rate", "pitch")

    def __init__(self, package: VoicePackage, speaker: str, runtime: Runtime, threads: int) -> None:
        manifest = package.manifest
        if manifest.sample_rate != small_frames.SAMPLE_RATE:
            raise VoiceError(
                f"voice {manifest.name} says {manifest.sample_rate} Hz, but its kind has"
                f" {small_frames.SAMPLE_RATE}: export it again"
            )
        self.name = manifest.name
        self.sample_rate = manifest.sample_rate
        self.languages = manifest.languages
        self.speakers = manifest.speakers
        self.runtime = runtime.name
        network = msgspec.json.decode(package.path("network.json").read_bytes(), type=Network)
        self._symbols = network.symbols
        self._encode = runtime.load(package.path("encode.onnx"), threads)
        graph = runtime.load(package.path("decode.onnx"), threads)
        self._decoder = Decoder(graph, network.hidden, network.state)

    @property
    def network_ns(self) -> int:
        """See `Voice.network_ns`."""
        return self._encode.busy_ns + self._decoder.graph.busy_ns

    def speak(self, segment: Segment, controls: Controls, abandon: Abandon) -> "SmallSpeech":
        """Begin a segment; see `Voice.speak`.

        Its first chunk is decoded here: where its sound begins settles where the words stand.
        """
        tokens, place, skipped = numbered(segment.phonemes, self._symbols, self.name)
        if not tokens:
            nothing = Timing((0,) * len(segment.words), (0,) * len(segment.marks), 0)
            return SmallSpeech(nothing, time.monotonic_ns(), skipped, None, [], 0)
        hidden, ends, frames = self._encoded([PAD, *tokens, PAD], controls)
        encoded_ns = time.monotonic_ns()
        stream = Stream(self._decoder, hidden, frames, abandon)
        head, samples = _first_sound(stream)
        # The PAD in front is the first of them: where it ends, the first phoneme begins.
        begins = np.maximum(ends * HOP - head, 0)
        timing = Timing(
            words=tuple(int(begins[place[word.first]]) for word in segment.words),
            marks=tuple(int(begins[place[mark.first]]) for mark in segment.marks),
            samples=stream.total * HOP - head,
        )
        return SmallSpeech(timing, encoded_ns, skipped, stream, samples, head)

    def close(self) -> None:
        """Free the runtime."""
        self._encode.close()
        self._decoder.graph.close()

    def _encoded(
        self, tokens: Sequence[int], controls: Controls
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], small_frames.Frames]:
        """Vectors of the tokens, where each ends in frames, and the frames."""
        rate = min(_FASTEST, max(_SLOWEST, controls.rate))
        pitch = min(_HIGHEST, max(_LOWEST, controls.pitch))
        hidden, durations, points = self._encode.run(
            ["hidden", "durations", "contour"],
            {"tokens": np.array([tokens], np.int64)},
        )
        lengths = durations[0].astype(np.float64)
        lengths[[0, -1]] = np.minimum(lengths[[0, -1]], _EDGE_FRAMES)
        lengths /= rate
        ends = np.maximum(small_frames.ends(lengths), 1)
        f0, energy = small_frames.contour(points[0], ends, lengths, pitch)
        return hidden[0], ends, small_frames.frames(ends, f0, energy)


@dataclass(frozen=True, slots=True)
class SmallSpeech:
    """A segment on its way; see `Speech`."""

    timing: Timing
    encoded_ns: int
    skipped: tuple[Skipped, ...]
    stream: Stream | None
    """None where there is nothing to say."""
    first: list[NDArray[np.float32]]
    """What was decoded to find the first sound."""
    head: int
    """Samples of silence to leave out at the beginning; below 0, samples to put there."""

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """See `Speech.chunks`."""
        if self.stream is None:
            return
        blocks = _FIRST_BLOCKS
        samples = _placed(np.concatenate(self.first), self.head)
        at_head = True
        while True:
            last = self.stream.done == self.stream.total
            _fade(samples, at_head, last)
            yield samples
            at_head = False
            if last:
                return
            blocks = _next_size(blocks, self.stream)
            samples = self.stream.take(blocks)


def _first_sound(stream: Stream) -> tuple[int, list[NDArray[np.float32]]]:
    """Decode up to the first sound; returns the silence too many before it, and the chunks."""
    taken = []
    before = 0
    while stream.done < stream.total:
        samples = stream.take(_next_size(0, stream))
        taken.append(samples)
        loud = np.flatnonzero(np.abs(samples) > shape.AUDIBLE)
        if len(loud):
            return before + int(loud[0]) - _EDGE_SAMPLES, taken
        before += len(samples)
    return max(0, before - _EDGE_SAMPLES), taken


def _next_size(blocks: int, stream: Stream) -> int:
    """The next chunk: twice as long each time; a rest too short for a chunk joins the last."""
    size = min(2 * blocks, _MOST_BLOCKS) or _FIRST_BLOCKS
    rest = stream.total - stream.done - size
    return size + rest if rest < _FIRST_BLOCKS else size


def _fade(samples: NDArray[np.float32], head: bool, tail: bool) -> None:
    """Raise the first and lower the last 5 ms, where they are the ends of the segment."""
    length = min(_FADE_SAMPLES, len(samples))
    ramp = np.asarray(0.5 - 0.5 * np.cos((np.arange(length) + 0.5) * (np.pi / length)), np.float32)
    if head:
        samples[:length] *= ramp
    if tail:
        samples[len(samples) - length :] *= ramp[::-1]


def _placed(samples: NDArray[np.float32], head: int) -> NDArray[np.float32]:
    """Samples without the first `head`, or with silence before them."""
    return samples[head:].copy() if head >= 0 else np.pad(samples, (-head, 0))
