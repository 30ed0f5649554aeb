"""A voice whose sound tells what it is, and a reader of recordings of it.

Every phoneme is a frame of 10 ms at 48 kHz: first half the utterance, a positive level, then half
the phoneme, a negative level. The utterance is told to the voice by its rate. So each sample of a
recording says whose it is and from which phoneme; a pause is zero.
"""

import hashlib
import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, save

from utterd.engine.voices.vits import DURATIONS, RATE, spell

SAMPLE_RATE = 48_000
HALF = 240
FRAME = 2 * HALF
RAMP = 240
"""Of the player, in samples."""
MOST_UTTERANCES = 1023
_LOWEST, _SPAN = 0.05, 0.78
_SYMBOLS = 128
_LANGUAGE = "en-us"
WORDS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("red", "blue", "green", "white", "black", "moon", "house", "fish", "bread", "salt"),
)
SPELT = {word: tuple(s for s in spell(word, _LANGUAGE)[0] if s not in ",. ") for word in WORDS}
_IDS = {s: n for n, s in enumerate(sorted({s for spelt in SPELT.values() for s in spelt}), 3)}


def rate_of(utterance: int) -> float:
    """The rate of speech that tells the voice which utterance (1 to 1023) it speaks."""
    return 1 + utterance / 1024


def phonemes(text: str) -> list[int]:
    """Of a text of words with a comma or a full stop behind each."""
    words = text.replace(",", " ").replace(".", " ").split()
    return [_IDS[symbol] for word in words for symbol in SPELT[word]]


def ends_of_words(text: str) -> list[tuple[int, int]]:
    """For each word, the number of its first phoneme and the character behind it."""
    found, at, count = [], 0, 0
    for word in text.replace(",", " ").replace(".", " ").split():
        at = text.index(word, at) + len(word)
        found.append((count, at))
        count += len(SPELT[word])
    return found


def build(folder: Path) -> None:
    """Write the voice package."""
    folder.mkdir(parents=True)
    _save_graph(folder / "model.onnx")
    config = {
        "audio": {"sample_rate": SAMPLE_RATE},
        "espeak": {"voice": _LANGUAGE},
        "phoneme_id_map": {s: [0] for s in "_ ,.;:!?"}
        | {"^": [1], "$": [2]}
        | {symbol: [number] for symbol, number in _IDS.items()},
    }
    (folder / "config.json").write_text(json.dumps(config))
    manifest = [
        *("format = 1", f'name = "{folder.name}"', 'kind = "vits"', 'languages = ["en"]'),
        *(f"sample_rate = {SAMPLE_RATE}", 'licence = "CC0"', 'origin = "made by a test"'),
        *('phonemes = "espeak"', 'timings = "exact"', 'speakers = ["x"]', 'default_speaker = "x"'),
    ]
    for name in ("model.onnx", "config.json"):
        data = (folder / name).read_bytes()
        manifest.append(f'[files."{name}"]\nbytes = {len(data)}')
        manifest.append(f'sha256 = "{hashlib.sha256(data).hexdigest()}"')
    (folder / "voice.toml").write_text("\n".join(manifest))


def _save_graph(path: Path) -> None:
    constants = {
        "first_symbol": np.array(2, np.int64),
        "one_axis": np.array([1], np.int64),
        "flat": np.array([-1], np.int64),
        "as_audio": np.array([1, 1, 1, -1], np.int64),
        "as_frames": np.array([1, 1, -1], np.int64),
        "half": np.ones((1, HALF), np.float32),
        "nothing": np.zeros((), np.float32),
        "one": np.ones((), np.float32),
        "span": np.array(_SPAN, np.float32),
        "symbol_step": np.array(-_SPAN / _SYMBOLS, np.float32),
        "lowest": np.array(_LOWEST, np.float32),
        "minus_lowest": np.array(-_LOWEST, np.float32),
    }
    nodes = [
        ("Reshape", ["input", "flat"], "ids", {}),
        ("Greater", ["ids", "first_symbol"], "sounds", {}),
        ("Cast", ["sounds"], "frames", {"to": TensorProto.FLOAT}),
        ("Reshape", ["frames", "as_frames"], DURATIONS, {}),
        ("Compress", ["ids", "sounds"], "kept", {"axis": 0}),
        ("Cast", ["kept"], "kept_float", {"to": TensorProto.FLOAT}),
        ("Unsqueeze", ["kept_float", "one_axis"], "column", {}),
        ("Mul", ["column", "symbol_step"], "scaled", {}),
        ("Add", ["scaled", "minus_lowest"], "symbol_level", {}),
        ("Mul", ["symbol_level", "half"], "symbol_half", {}),
        ("Sub", [RATE, "one"], "number", {}),
        ("Mul", ["number", "span"], "number_scaled", {}),
        ("Add", ["number_scaled", "lowest"], "utterance_level", {}),
        ("Mul", ["symbol_half", "nothing"], "zeros", {}),
        ("Add", ["zeros", "utterance_level"], "utterance_half", {}),
        ("Concat", ["utterance_half", "symbol_half"], "both", {"axis": 1}),
        ("Reshape", ["both", "as_audio"], "output", {}),
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, [name], **more) for kind, inputs, name, more in nodes],
        "coded",
        [
            helper.make_tensor_value_info("input", TensorProto.INT64, [1, "phonemes"]),
            helper.make_tensor_value_info("input_lengths", TensorProto.INT64, [1]),
            helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
            helper.make_tensor_value_info(RATE, TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1, 1, "samples"]),
            helper.make_tensor_value_info(DURATIONS, TensorProto.FLOAT, [1, 1, "phonemes"]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        path,
    )


@dataclass(slots=True)
class Stretch:
    """Sound between two silences."""

    begin: int
    """Its first sample in the recording."""
    end: int
    """Behind its last sample."""
    utterance: int
    """0 where none of its samples is at its full level."""
    phonemes: list[int]
    """Those that are in it from their first sample to their last, unchanged."""
    whole: bool
    """It begins and ends with a whole frame, and nothing in it is faded."""


def stretches(recording: NDArray[np.int16]) -> list[Stretch]:
    """What a recording holds, in order.

    Raises:
        AssertionError: two utterances without silence between them, or levels of no utterance.
    """
    loud = np.flatnonzero(recording)
    if not len(loud):
        return []
    cuts = np.flatnonzero(np.diff(loud) > 1)
    begins, ends = [loud[0], *loud[cuts + 1]], [*loud[cuts], loud[-1]]
    return [_stretch(recording, int(b), int(e) + 1) for b, e in zip(begins, ends, strict=True)]


def _stretch(recording: NDArray[np.int16], begin: int, end: int) -> Stretch:
    part = recording[begin:end].astype(np.float64) / 32767
    edges = [0, *(np.flatnonzero(np.diff(np.sign(part))) + 1), len(part)]
    halves = [part[b:e] for b, e in itertools.pairwise(edges)]
    full = [len(half) >= HALF and np.ptp(half[:HALF]) < 1e-4 for half in halves]
    utterances, found = set(), []
    for number, half in enumerate(halves):
        # Where sound breaks off, its last sample fades.
        longest = HALF + (RAMP if number == len(halves) - 1 else 0)
        assert len(half) <= longest, f"a level holds for {len(half)} samples at {begin}"
        if full[number] and half[0] > 0:
            utterances.add(_number((half[0] - _LOWEST) / _SPAN * 1024))
        elif full[number] and number and full[number - 1]:
            found.append(_number((-half[0] - _LOWEST) / _SPAN * _SYMBOLS))
    assert len(utterances) <= 1, f"the utterances {utterances} run into each other at {begin}"
    whole = all(full) and len(part) % FRAME == 0 and part[0] > 0
    return Stretch(begin, end, min(utterances, default=0), found, bool(whole))


def _number(value: float) -> int:
    assert abs(value - round(value)) < 0.2, f"{value} is no code"
    return round(value)
