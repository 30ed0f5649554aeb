"""A small network that tells which reading a polyphonic character has in its sentence.

The weights are g2pM's (Apache-2.0): a bidirectional LSTM of 32 units over the characters. It runs as
one loop in numpy for both directions at once.
"""

import io

import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.data_files import read_bytes

_UNITS = 32


class Polyphones:
    """Reads polyphonic characters in context."""

    def __init__(self) -> None:
        with np.load(io.BytesIO(read_bytes("polyphones.npz"))) as data:
            arrays = {
                name: data[name].astype(np.float32)
                if data[name].dtype == np.float16
                else data[name]
                for name in data.files
            }
        # tanh(x) = 2 sigmoid(2x) - 1: doubling the third gate lets one function serve all four.
        scale = np.ones(4 * _UNITS, np.float32)
        scale[2 * _UNITS : 3 * _UNITS] = 2
        # The part of each gate that only depends on the character is computed once, here.
        self._gates = (
            arrays["embedding"] @ (arrays["into"] * scale) + (arrays["bias"] * scale)[:, None]
        )
        self._recur = arrays["recur"] * scale
        self._hidden = arrays["hidden"], arrays["hidden_bias"]
        self._out = arrays["out"].T.copy(), arrays["out_bias"]
        self._ids = {c: i for i, c in enumerate(str(arrays["characters"]), start=3)}
        self._classes = str(arrays["classes"]).split(" ")
        self._choices = {
            c: np.array([int(n) for n in text.split(" ")])
            for c, text in zip(
                str(arrays["targets"]), str(arrays["choices"]).split("|"), strict=True
            )
        }

    def __contains__(self, character: str) -> bool:
        return character in self._choices

    def read(self, text: str, targets: list[int]) -> list[tuple[str, float]]:
        """Return reading and its probability among the character's own, for each index."""
        states = self._states(text)[targets]
        weight, bias = self._hidden
        features = np.maximum(states @ weight + bias, 0)
        out, out_bias = self._out
        found = []
        for feature, target in zip(features, targets, strict=True):
            choices = self._choices[text[target]]
            scores = out[choices] @ feature + out_bias[choices]
            odds = np.exp(scores - scores.max())
            best = int(odds.argmax())
            found.append((self._classes[choices[best]], float(odds[best] / odds.sum())))
        return found

    def _states(self, text: str) -> NDArray[np.float32]:
        """Return the network's view of each character, (T, 64)."""
        ids = np.array([1, *(self._ids.get(c, 0) for c in text), 2])
        forward, backward = self._gates
        gates = np.stack([forward[ids], backward[ids[::-1]]], axis=1)[:, :, None]  # (T, 2, 1, 128)
        steps = len(ids)
        states = np.empty((steps, 2, _UNITS), np.float32)
        h = np.zeros((2, 1, _UNITS), np.float32)
        c = np.zeros((2, 1, _UNITS), np.float32)
        for step in range(steps):
            z = gates[step] + h @ self._recur
            np.negative(z, out=z)
            np.exp(z, out=z)
            z += 1
            np.reciprocal(z, out=z)
            i, f, g, o = z[..., :32], z[..., 32:64], z[..., 64:96], z[..., 96:]
            c = f * c + i * (2 * g - 1)
            h = o * np.tanh(c)
            states[step] = h[:, 0]
        return np.concatenate([states[1:-1, 0], states[-2:0:-1, 1]], axis=1)
