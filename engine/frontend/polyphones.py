"""A small network that tells which reading a polyphonic character has in its sentence.

The weights are g2pM's (Apache-2.0): a bidirectional LSTM of 32 units over the characters. It
runs as one loop in numpy for both directions at once.
"""

import io

import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.data_files import read_bytes

_UNITS = 32


class Polyphones:
    """Reads polyphonic characters in context, all but those of `without`."""

    def __init__(self, without: frozenset[str] = frozenset()) -> None:
        with np.load(io.BytesIO(read_bytes("polyphones.npz"))) as data:
            arrays = {
                name: data[name].astype(np.float32)
                if data[name].dtype == np.float16
                else data[name]
                for name in data.files
            }
        # sigmoid(x) = (tanh(x / 2) + 1) / 2: with three gates halved, one tanh serves all four.
        # The halves that remain are taken into the weights, so the loop works with twice the state.
        scale = np.full(4 * _UNITS, 0.5, np.float32)
        scale[2 * _UNITS : 3 * _UNITS] = 1
        # The part of each gate that only depends on the character is computed once, here.
        self._gates = (
            arrays["embedding"] @ (arrays["into"] * scale) + (arrays["bias"] * scale)[:, None]
        )
        self._recur = arrays["recur"] * scale / 2
        self._hidden = arrays["hidden"] / 2, arrays["hidden_bias"]
        self._out = arrays["out"].T.copy(), arrays["out_bias"]
        self._ids = {c: i for i, c in enumerate(str(arrays["characters"]), start=3)}
        self._classes = str(arrays["classes"]).split(" ")
        self._choices = {
            c: np.array([int(n) for n in text.split(" ")])
            for c, text in zip(
                str(arrays["targets"]), str(arrays["choices"]).split("|"), strict=True
            )
            if c not in without
        }
        self.characters = frozenset(self._choices)

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
        """Return twice the network's view of each character, (T, 64)."""
        ids = np.array([1, *(self._ids.get(c, 0) for c in text), 2])
        forward, backward = self._gates
        gates = np.stack([forward[ids], backward[ids[::-1]]], axis=1)[:, :, None]  # (T, 2, 1, 128)
        steps = len(ids)
        states = np.zeros((steps, 2, 1, _UNITS), np.float32)
        h = np.zeros((2, 1, _UNITS), np.float32)
        cell = np.zeros((2, 1, _UNITS), np.float32)
        recur, matmul, tanh = self._recur, np.matmul, np.tanh
        for step in range(steps):
            z = matmul(h, recur)
            z += gates[step]
            tanh(z, out=z)
            candidate = z[..., 64:96].copy()
            z += 1
            candidate *= z[..., :32]
            cell *= z[..., 32:64]
            cell += candidate
            cell *= 0.5
            h = states[step]
            tanh(cell, out=h)
            h *= z[..., 96:]
        flat = states[:, :, 0]
        return np.concatenate([flat[1:-1, 0], flat[-2:0:-1, 1]], axis=1)
