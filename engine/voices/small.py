"""The small voice of our own: phonemes to sound in one pass, chunk by chunk.

Its package holds `encode.onnx` (phoneme ids to vectors, durations, and a contour of F0, voicing
and energy), `decode.onnx` (frames to samples, with carried state) and `network.json`.
"""

import time
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.contract import Segment, Skipped
from utterd.engine.runtimes.contract import Abandon, Runtime
from utterd.engine.voices import small_frames
from utterd.engine.voices.contract import Control, Controls, Timing
from utterd.engine.voices.numbered import numbered
from utterd.engine.voices.package import VoiceError, VoicePackage
from utterd.engine.voices.small_faster import Faster, needed
from utterd.engine.voices.small_frames import HOP
from utterd.engine.voices.small_plan import Encoded, Manner, Plan
from utterd.engine.voices.small_stream import Decoder, Stream
from utterd.engine.voices.whole import WholeSpeech

PAD = 0
_FIRST_BLOCKS = 6
"""75 ms."""
_MOST_BLOCKS = 64
_SLOWEST, _FASTEST = 0.5, 3.0
_FASTEST_SPOKEN = 1.1
"""Faster than this is made by `Faster`."""
_LOWEST, _HIGHEST = 0.5, 2.0
_THREADS = 1
"""Its products are so small that handing a part of each to a second thread costs more (first chunk
5 instead of 4 ms, 1.4 times the time of a sentence, on two cores)."""
_AUDIBLE = 10.0 ** (-55.0 / 20.0)
"""Full scale 1. The hiss of a first consonant begins below the -50 dBFS that count as first sound,
and what is cut of it is misheard."""
_EDGE_SAMPLES = small_frames.SAMPLE_RATE // 200
"""5 ms: first sound is 8 ms behind the beginning (median)."""
_FADE_SAMPLES = small_frames.SAMPLE_RATE // 200


class Network(msgspec.Struct, frozen=True):
    """`network.json`: what the graphs do not tell by themselves."""

    symbols: dict[str, int]
    hidden: int
    """Channels of a phoneme's vector."""
    state: int
    """Channels of the decoder's states."""
    reach: int = 0
    """Tokens that `encode.onnx` looks at on either side of each; 0: not known."""


class Small:
    """See `Voice`."""

    controls: tuple[Control, ...] = ("rate", "pitch")
    parallel = True

    def __init__(self, package: VoicePackage, speaker: str, runtime: Runtime, threads: int) -> None:
        del threads
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
        self._reach = network.reach
        self._graph = runtime.load(package.path("encode.onnx"), _THREADS)
        if "wanted" not in self._graph.inputs:
            self._graph.close()
            raise VoiceError(
                f"voice {manifest.name} was exported by an older utterd: export it again, or remove"
                " it"
            )
        graph = runtime.load(package.path("decode.onnx"), _THREADS)
        self._decoder = Decoder(graph, network.hidden, network.state)

    @property
    def network_ns(self) -> int:
        """See `Voice.network_ns`."""
        return self._graph.busy_ns + self._decoder.graph.busy_ns

    def speak(
        self, segment: Segment, controls: Controls, abandon: Abandon
    ) -> "SmallSpeech | WholeSpeech":
        """Begin a segment; see `Voice.speak`.

        Its first chunk is decoded here: where its sound begins settles where the words stand.
        """
        tokens, place, skipped = numbered(segment.phonemes, self._symbols, self.name)
        if not tokens:
            nothing = Timing((0,) * len(segment.words), (0,) * len(segment.marks), 0)
            none = np.zeros(0, np.float32)
            return WholeSpeech(nothing, time.monotonic_ns(), skipped, none, self.sample_rate)
        rate = min(_FASTEST, max(_SLOWEST, controls.rate))
        spoken = min(_FASTEST_SPOKEN, rate)
        manner = Manner(spoken, pitch=min(_HIGHEST, max(_LOWEST, controls.pitch)))
        factor = rate / spoken
        first = needed(_FIRST_BLOCKS, factor) if factor > 1 else _FIRST_BLOCKS
        first += self._decoder.ahead
        plan = Plan(self._encode, [PAD, *tokens, PAD], manner, self._reach, first)
        encoded_ns = time.monotonic_ns()
        decoded = Stream(self._decoder, plan.hidden, plan.frames, abandon)
        stream = Faster(decoded, plan.frames, factor) if factor > 1 else decoded
        # The PAD in front is the first of them: where it ends, the first phoneme begins.
        words = [place[word.first] for word in segment.words]
        marks = [place[mark.first] for mark in segment.marks]
        return SmallSpeech(plan, stream, words, marks, skipped=skipped, encoded_ns=encoded_ns)

    def close(self) -> None:
        """Free the runtime."""
        self._graph.close()
        self._decoder.graph.close()

    def _encode(self, tokens: Sequence[int], count: int, wanted: int) -> Encoded:
        position = small_frames.position(count, len(tokens))[None]
        hidden, durations, contour = self._graph.run(
            ["hidden", "durations", "contour"],
            {
                "tokens": np.array([tokens], np.int64),
                "position": position,
                "wanted": np.array(wanted, np.int64),
            },
        )
        return Encoded(hidden[0], durations[0].astype(np.float64), contour[0])


class SmallSpeech:
    """A segment on its way; see `Speech`.

    Args:
        plan: what to say.
        stream: the plan on its way through the decoder, at its beginning.
        words: place of each word's first phoneme in the plan's ends.
        marks: likewise.
        skipped: see `Speech.skipped`.
        encoded_ns: see `Speech.encoded_ns`.
    """

    def __init__(
        self,
        plan: Plan,
        stream: Stream | Faster,
        words: Sequence[int],
        marks: Sequence[int],
        *,
        skipped: tuple[Skipped, ...],
        encoded_ns: int,
    ) -> None:
        self.skipped = skipped
        self.encoded_ns = encoded_ns
        self._plan = plan
        self._stream = stream
        self._words = words
        self._marks = marks
        self._head, self._first = self._first_sound()

    @property
    def settled(self) -> bool:
        """See `Speech.settled`."""
        return self._plan.settled

    @property
    def timing(self) -> Timing:
        """See `Speech.timing`."""
        self._settle()
        begins = np.maximum(self._stream.places(self._plan.ends) - self._head, 0)
        begins[0] = 0  # the first phoneme sounds from the first sample on, before its pad ends
        return Timing(
            words=tuple(int(begins[place]) for place in self._words),
            marks=tuple(int(begins[place]) for place in self._marks),
            samples=self._stream.total * HOP - self._head,
        )

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """See `Speech.chunks`."""
        blocks = _FIRST_BLOCKS
        samples = _placed(self._first, self._head)
        at_head = True
        while True:
            last = self._stream.done == self._stream.total
            _fade(samples, at_head, last)
            yield samples
            at_head = False
            if last:
                return
            self._settle()
            blocks = _next_size(blocks, self._stream)
            samples = self._stream.take(blocks)

    def _settle(self) -> None:
        if not self._plan.settled:
            self._plan.settle()
            self._stream.extend(self._plan.hidden, self._plan.frames)

    def _first_sound(self) -> tuple[int, NDArray[np.float32]]:
        """Decode up to the first sound; returns the silence too many before it, and the samples.

        Silence too many is below 0 where some has to be put there.
        """
        taken: list[NDArray[np.float32]] = []
        before = 0
        while self._stream.done < self._stream.total:
            if taken:
                self._settle()
            samples = self._stream.take(_next_size(0, self._stream))
            taken.append(samples)
            loud = np.abs(samples) > _AUDIBLE
            if (first := int(loud.argmax())) or loud[0]:
                return before + first - _EDGE_SAMPLES, np.concatenate(taken)
            before += len(samples)
        return max(0, before - _EDGE_SAMPLES), np.concatenate(taken)


def _next_size(blocks: int, stream: Stream | Faster) -> int:
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
