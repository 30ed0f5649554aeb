"""Texts that arrive in pieces: what may be spoken, and when a silent client is not waited for."""

from dataclasses import dataclass, field

from utterd.daemon.halves import mend, split_half
from utterd.engine.frontend.stream import Piece, TextStream

Key = tuple[str, str]
Pieces = list[Piece]


@dataclass(slots=True)
class OpenText:
    """A text that still arrives."""

    text: TextStream
    touched_ns: int
    """When its last token came."""
    flushed: bool = False
    half: str = ""
    """First half of a character that was cut in two."""

    def push(self, text: str) -> tuple[str, Pieces]:
        """Add to it; gives the whole characters that came and the pieces that may be spoken."""
        cut, self.half = split_half(self.half + text)
        whole = mend(cut)
        return whole, self.text.push(whole)


@dataclass(slots=True)
class Arriving:
    """All open texts, by client and id."""

    flush_ns: int
    """A text that gets no token for so long is spoken as far as it has come."""
    end_ns: int
    """A text that gets no token for so long is complete: its client may have vanished."""
    _open: dict[Key, OpenText] = field(default_factory=dict)

    def begin(self, key: Key, text: str, now_ns: int) -> tuple[str, Pieces]:
        """Open a text; see `push`."""
        self._open[key] = OpenText(TextStream(), now_ns)
        return self._open[key].push(text)

    def push(self, key: Key, text: str, now_ns: int) -> tuple[str, Pieces]:
        """Add to a text; gives the characters that came, and the pieces that may be spoken now.

        A character that was cut in two comes when its second half does.
        """
        arriving = self._open[key]
        arriving.touched_ns, arriving.flushed = now_ns, False
        return arriving.push(text)

    def finish(self, key: Key) -> Pieces:
        """Complete a text; gives the rest of it."""
        return self._open.pop(key).text.finish()

    def forget(self, key: Key) -> None:
        """Its utterance is over."""
        self._open.pop(key, None)

    def deadlines_ns(self) -> list[int]:
        """When each open text is due to be flushed or ended."""
        return [
            arriving.touched_ns + (self.end_ns if arriving.flushed else self.flush_ns)
            for arriving in self._open.values()
        ]

    def stale(self, now_ns: int) -> list[Key]:
        """Texts to be completed for want of tokens."""
        return [
            k for k, arriving in self._open.items() if arriving.touched_ns + self.end_ns <= now_ns
        ]

    def flush(self, now_ns: int) -> list[tuple[Key, Pieces]]:
        """What waiting texts held back and no token has come for."""
        flushed = []
        for key, arriving in self._open.items():
            if not arriving.flushed and arriving.touched_ns + self.flush_ns <= now_ns:
                arriving.flushed = True
                flushed.append((key, arriving.text.flush()))
        return flushed
