"""The English lexicon: one block of sorted lines, searched in place.

A dictionary of its 180,000 words would cost 40 MB and a quarter of a second at start; the block
costs its own size.
"""

from functools import lru_cache

from utterd.engine.frontend.data_files import read_bytes


class EnglishLexicon:
    """Words and their phonemes; heteronyms have one reading for each part of speech."""

    def __init__(self, block: bytes | None = None) -> None:
        self._block = read_bytes("english.tsv") if block is None else block
        self.find = lru_cache(4096)(self._find)

    def _find(self, word: str) -> dict[str, str] | None:
        """Return readings by tag (`DEFAULT` always among them), or None."""
        key = word.encode("ascii", "replace") + b"\t"
        block = self._block
        low, high = 0, len(block)
        while low < high:
            mid = (low + high) // 2
            start = block.rfind(b"\n", low, mid) + 1 or low
            end = block.find(b"\n", mid)
            line = block[start : end if end >= 0 else len(block)]
            if line.startswith(key):
                return _readings(line[len(key) :].decode("utf-8"))
            if line < key:
                low = end + 1 if end >= 0 else len(block)
            else:
                high = start
        return None


def _readings(text: str) -> dict[str, str]:
    if "=" not in text:
        return {"DEFAULT": text}
    return dict(pair.split("=", 1) for pair in text.split("|"))
