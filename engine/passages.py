"""Cuts a long text where a sentence ends, so that its first words need not wait for its last."""

import re

ENOUGH = 160
"""Characters after which a passage ends with its sentence."""

_TOO_MUCH = 600
_END = re.compile(r"[。！？!?…\n]+[”’」』）)\"']*|\.+[\"')”’]*(?=\s)")
_GAP = re.compile(r"[，、；,;:：\s]")


def passages(text: str) -> list[tuple[int, str]]:
    """Cut a text into passages that the front end reads one by one.

    Args:
        text: plain text of any length.

    Returns:
        Offset and text of each; joined they are the text, and an empty text is one passage.
    """
    pieces = []
    begin = 0
    while len(text) - begin > ENOUGH:
        end = _cut(text, begin)
        pieces.append((begin, text[begin:end]))
        begin = end
    if begin < len(text) or not pieces:
        pieces.append((begin, text[begin:]))
    return pieces


def _cut(text: str, begin: int) -> int:
    """Where the passage from `begin` ends: at a sentence's end, else at a gap, else anywhere."""
    limit = min(len(text), begin + _TOO_MUCH)
    sentence = _END.search(text, begin, limit)
    # The first sentence alone is read at once; later ones are gathered.
    if begin > 0:
        sentence = _END.search(text, min(begin + ENOUGH, limit), limit) or sentence
    if sentence:
        return sentence.end()
    gaps = list(_GAP.finditer(text, begin + ENOUGH, limit))
    return gaps[0].end() if gaps else limit
