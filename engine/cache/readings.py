"""A front end that remembers how it read the last short texts."""

from collections import OrderedDict
from pathlib import Path
from typing import Literal

from utterd.engine.frontend.contract import Analysis
from utterd.engine.frontend.emoji import EmojiPolicy
from utterd.engine.frontend.reader import Reader

_TEXTS = 128
_LONGEST = 120
"""Characters; longer texts are seldom said again, and take memory."""


class RememberingReader(Reader):
    """See `Reader`. A lexicon that changed makes it forget."""

    def __init__(self, lexicon: Path | None = None, *, emoji_policy: EmojiPolicy = "skip") -> None:
        super().__init__(lexicon, emoji_policy=emoji_policy)
        self._known: OrderedDict[tuple[str, int, str, str], Analysis] = OrderedDict()

    def analyse(
        self,
        text: str,
        *,
        offset: int = 0,
        language: str = "",
        format: Literal["plain", "ssml"] = "plain",  # noqa: A002 - the protocol's own name
    ) -> Analysis:
        """Read a whole text; see `Reader.analyse`."""
        self.refresh()
        key = (text, offset, language, format)
        known = self._known.get(key)
        if known is None:
            known = super().analyse(text, offset=offset, language=language, format=format)
            if len(text) <= _LONGEST:
                self._known[key] = known
                if len(self._known) > _TEXTS:
                    self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return known

    def refresh(self) -> bool:
        """See `Reader.refresh`."""
        if changed := super().refresh():
            self.forget()
        return changed

    def forget(self) -> None:
        """Forget all texts."""
        self._known.clear()
