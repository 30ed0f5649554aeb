"""Samples for several clients at once: one chunk for one of them, then one for the next.

Whoever has got least goes first, so that a new client's first chunk waits for one chunk of somebody
else and not for all of it.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True)
class _Turn:
    steps: Iterator[int]
    made: int = 0


class Turns:
    """The generations that are under way; one thread calls it."""

    def __init__(self) -> None:
        self._by_generation: dict[int, _Turn] = {}

    def __bool__(self) -> bool:
        return bool(self._by_generation)

    def add(self, generation: int, steps: Iterator[int]) -> None:
        """Take up a piece of a generation; several pieces of one follow each other.

        Args:
            generation: its number.
            steps: does a chunk each time, and gives the samples made so far.
        """
        if (known := self._by_generation.get(generation)) is not None:
            known.steps = itertools.chain(known.steps, steps)
        else:
            self._by_generation[generation] = _Turn(steps)

    def step(self) -> None:
        """Do one chunk of the generation that has got least; of several, of the first to come."""
        generation, turn = min(self._by_generation.items(), key=lambda item: item[1].made)
        try:
            turn.made = next(turn.steps)
        except StopIteration:
            del self._by_generation[generation]
