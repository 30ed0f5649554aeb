"""Text that arrives in pieces: when is enough of it there to be read.

Pure: no clock. The caller pushes what arrives, and calls `flush` when nothing has come for a while.
"""

from dataclasses import dataclass

from utterd.engine.frontend.boundaries import ends

MAX_LENGTH = 120
"""Characters after which text is handed on even without an end."""
MIN_LENGTH = 4
"""A clause shorter than this waits for the next one, unless a sentence ends."""

_OPEN = "“「『（(【《〈["
_CLOSE = "”」』）)】》〉]"


@dataclass(frozen=True, slots=True)
class Piece:
    """Text ready to be read and its place in the whole."""

    text: str
    offset: int


class TextStream:
    """Collects text; what it hands out, put together, is what was put in."""

    def __init__(self) -> None:
        self._buffer = ""
        self._offset = 0

    def push(self, piece: str) -> list[Piece]:
        """Add text and return what can be read now."""
        self._buffer += piece
        ready: list[Piece] = []
        at = 0
        for end, hard in ends(self._buffer, final=False):
            if end - at < MIN_LENGTH and not hard:
                continue
            if _inside(self._buffer[at:end]) and end - at < MAX_LENGTH:
                continue
            at = self._emit(ready, at, end)
        while len(self._buffer) - at > MAX_LENGTH:
            at = self._emit(ready, at, at + _cut(self._buffer[at : at + MAX_LENGTH]))
        self._buffer = self._buffer[at:]
        return ready

    def flush(self) -> list[Piece]:
        """Return all that can be said of what waits; half a character or number stays."""
        keep = _unfinished(self._buffer)
        at = len(self._buffer) - keep
        ready: list[Piece] = []
        if at > 0:
            self._emit(ready, 0, at)
            self._buffer = self._buffer[at:]
        return ready

    def finish(self) -> list[Piece]:
        """Return everything that waits: nothing more comes."""
        ready: list[Piece] = []
        if self._buffer:
            self._emit(ready, 0, len(self._buffer))
            self._buffer = ""
        return ready

    def _emit(self, ready: list[Piece], start: int, end: int) -> int:
        ready.append(Piece(self._buffer[start:end], self._offset))
        self._offset += end - start
        return end


def _inside(text: str) -> bool:
    """Tell whether a bracket or quotation is open at the end."""
    return sum(c in _OPEN for c in text) > sum(c in _CLOSE for c in text)


def _cut(text: str) -> int:
    """Return where to cut a text without an end: at a pause or space, not inside a word."""
    for i in range(len(text) - 1, len(text) // 2, -1):
        if text[i] in "、 \t":
            return i + 1
    at = len(text)
    while at > len(text) // 2 and _sticks(text[at - 1]):
        at -= 1
    at = at if at > len(text) // 2 else len(text)
    return max(1, at - _unfinished(text[:at]))


def _sticks(c: str) -> bool:
    return c.isascii() and not c.isspace()


def _unfinished(text: str) -> int:
    """Return how many characters at the end wait for their other half."""
    if not text:
        return 0
    last = text[-1]
    if 0xD800 <= ord(last) <= 0xDBFF or last == "\u200d":
        return 1
    keep = 0
    for c in reversed(text):
        # The digits of a number, the letters of a word or an address that is still being written.
        if not (c.isascii() and (c.isalnum() or c in ".,:/@%+-_'")):
            break
        keep += 1
    return (
        keep if keep < len(text) and keep <= 40 and text[-1].isascii() and text[-1].isalnum() else 0
    )
