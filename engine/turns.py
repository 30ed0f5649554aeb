"""Samples for several clients at once: one chunk for one of them, then one for the next.

Whoever has got least goes first, so that a new client's first chunk waits for one chunk of somebody
else and not for all of it. Whoever has a second ahead waits for those who came before: they end one
after another, instead of all late and together. Now and then the first to come has a turn whatever
it has got: nobody waits for ever while others come.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

_AHEAD = 24_000
"""Samples, a second or more."""
_OF_THE_FIRST = 16
"""One turn in so many."""


@dataclass(slots=True)
class _Turn:
    pieces: deque[Iterator[int]]
    made: int = 0
    stepped: bool = False
    """A thread makes a chunk of it now."""


class Turns:
    """The generations that are under way.

    Several threads may step, each another generation, but only inside a step may one of them give
    way to another.
    """

    def __init__(self) -> None:
        self._by_generation: dict[int, _Turn] = {}
        self._steps = 0

    def __len__(self) -> int:
        return len(self._by_generation)

    def __contains__(self, generation: int) -> bool:
        return generation in self._by_generation

    @property
    def waiting(self) -> bool:
        """Whether there is a generation that no thread steps."""
        return any(not turn.stepped for turn in self._by_generation.values())

    def add(self, generation: int, steps: Iterator[int]) -> None:
        """Take up a piece of a generation; several pieces of one follow each other.

        Args:
            generation: its number.
            steps: does a chunk each time, and gives the samples made so far.
        """
        if (known := self._by_generation.get(generation)) is not None:
            known.pieces.append(steps)
        else:
            self._by_generation[generation] = _Turn(deque([steps]))

    def step(self) -> None:
        """Do one chunk of the waiting one that has got least, or of the first with enough.

        One must be `waiting`.
        """
        waiting = [item for item in self._by_generation.items() if not item[1].stepped]
        self._steps += 1
        generation, turn = waiting[0]
        if self._steps % _OF_THE_FIRST:
            generation, turn = min(waiting, key=lambda item: min(item[1].made, _AHEAD))
        turn.stepped = True
        try:
            turn.made = next(turn.pieces[0])
        except StopIteration:
            turn.pieces.popleft()
            if not turn.pieces:
                del self._by_generation[generation]
        finally:
            turn.stepped = False
