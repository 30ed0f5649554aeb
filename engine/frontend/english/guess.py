"""A guess at English words no lexicon knows: letters to phonemes by a small network.

Convolutions over the letters name, for each letter, the phonemes it stands for (none for a silent
one). `build_letters.py` trains it on the lexicon; of words it has not seen it reads 61 of 100
exactly right, stress included.
"""

import io

import numpy as np
from numpy.typing import NDArray

from utterd.engine.frontend.data_files import read_bytes

_EDGE = 27
_WIDTH = 5
_VOWELS = frozenset("AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ")
_WEAK = frozenset("əᵻ")
MAX_LETTERS = 40


class Guess:
    """Letters to phonemes."""

    def __init__(self) -> None:
        with np.load(io.BytesIO(read_bytes("letters.npz"))) as data:
            self._embedding: NDArray[np.float32] = data["embedding"].astype(np.float32)
            self._layers = [
                (data[f"weight{n}"].astype(np.float32), data[f"bias{n}"].astype(np.float32))
                for n in range(int(data["layers"]))
            ]
            self._out = data["out"].astype(np.float32), data["out_bias"].astype(np.float32)
            self._chunks = str(data["chunks"]).split("|")

    def __call__(self, word: str) -> str:
        """Return phonemes for a word of lower-case ASCII letters."""
        letters = [ord(c) - 96 for c in word if "a" <= c <= "z"][:MAX_LETTERS]
        if not letters:
            return ""
        scores = self._scores(letters)
        chunks = [self._chunks[int(row.argmax())] for row in scores]
        return stress("".join(chunks))

    def _scores(self, letters: list[int]) -> NDArray[np.float32]:
        """Return a score for each letter and chunk, (T, chunks)."""
        x = self._embedding[[_EDGE, *letters, _EDGE]]  # (T, 32)
        for n, (weight, bias) in enumerate(self._layers):
            padded = np.pad(x, ((_WIDTH // 2, _WIDTH // 2), (0, 0)))
            windows = np.concatenate([padded[k : k + len(x)] for k in range(_WIDTH)], axis=1)
            y = np.maximum(windows @ weight + bias, 0)
            x = y if n == 0 else x + y
        weight, bias = self._out
        scores: NDArray[np.float32] = x[1:-1] @ weight + bias
        return scores


def stress(phonemes: str) -> str:
    """See to it that one vowel, and only one, has the main stress."""
    first = phonemes.find("ˈ")
    if first >= 0:
        return phonemes[: first + 1] + phonemes[first + 1 :].replace("ˈ", "ˌ")
    secondary = phonemes.find("ˌ")
    if secondary >= 0:
        return phonemes[:secondary] + "ˈ" + phonemes[secondary + 1 :]
    vowels = [i for i, c in enumerate(phonemes) if c in _VOWELS]
    strong = next((i for i in vowels if phonemes[i] not in _WEAK), vowels[0] if vowels else None)
    return phonemes if strong is None else phonemes[:strong] + "ˈ" + phonemes[strong:]
