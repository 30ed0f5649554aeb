"""What the small voice's decoder shall say: vectors of the tokens, and the frames they last.

The encoder looks a few tokens to either side. Of a long segment it is first shown only the
beginning: enough for the first chunk, in a time that doesn't grow with the segment. What became of
these tokens then stays as it is when the encoder is shown all of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from utterd.engine.voices import small_frames

_SHORT_FRAMES = 2.2
"""A row of tokens seldom has fewer frames a token, at rate 1; four are usual."""
_WORTHWHILE = 24
"""Tokens beyond the certain ones from which on a first look spares enough."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the encoder says of P tokens."""

    hidden: NDArray[np.float32]
    """(P, channels)."""
    durations: NDArray[np.float64]
    """(P,), in frames at rate 1."""
    contour: NDArray[np.float32]
    """(P, places, 3)."""

    def part(self, first: int, last: int | None = None) -> "Encoded":
        """Some of its tokens."""
        cut = slice(first, last)
        return Encoded(self.hidden[cut], self.durations[cut], self.contour[cut])

    def then(self, later: "Encoded") -> "Encoded":
        """These tokens, and more."""
        return Encoded(
            np.concatenate([self.hidden, later.hidden]),
            np.concatenate([self.durations, later.durations]),
            np.concatenate([self.contour, later.contour]),
        )


@dataclass(frozen=True, slots=True)
class Manner:
    """How to say it: factors on speed and F0, within what the voice can."""

    rate: float
    pitch: float


class Plan:
    """Of one segment.

    Args:
        encode: shows tokens, from the first on, to the encoder; it is told of how many, and
            how many of them to say something of.
        tokens: with a pad at either end.
        manner: how to say them.
        reach: tokens the encoder looks at on either side; 0: not known.
        frames: that the first chunk hangs on.
    """

    def __init__(
        self,
        encode: Callable[[Sequence[int], int, int], Encoded],
        tokens: Sequence[int],
        manner: Manner,
        reach: int,
        frames: int,
    ) -> None:
        self.settled = False
        """All tokens were looked at."""
        self._encode = encode
        self._tokens = tokens
        self._manner = manner
        self._certain: Encoded | None = None
        # The contour of the last two hangs on points of tokens that are not known yet.
        certain = math.ceil(frames * manner.rate / _SHORT_FRAMES) + 3
        if reach and len(tokens) >= certain + _WORTHWHILE:
            self._certain = encode(tokens[: certain + reach], len(tokens), certain)
            self._lay_out(self._certain)
            if self.ends[certain - 3] >= frames:
                return
        self.settle()

    def settle(self) -> None:
        """Look at all tokens, if it wasn't done yet."""
        if self.settled:
            return
        self.settled = True
        count = len(self._tokens)
        whole = self._encode(self._tokens, count, count)
        if self._certain is not None:
            whole = self._certain.then(whole.part(len(self._certain.durations)))
        self._lay_out(whole)

    def _lay_out(self, encoded: Encoded) -> None:
        self.hidden = encoded.hidden
        # The pad in front has some 60 ms: the first consonant begins to sound within it.
        lengths = encoded.durations / self._manner.rate
        self.ends = np.maximum(small_frames.ends(lengths), 1)
        """Where each token ends, in frames."""
        f0, energy = small_frames.contour(encoded.contour, self.ends, lengths, self._manner.pitch)
        self.frames = small_frames.frames(self.ends, f0, energy)
