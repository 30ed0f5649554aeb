"""Readings given in the text: 行{hang2} or 银行{yin2 hang2}."""

import re

from utterd.engine.frontend.mapped import Edit, Mapped
from utterd.engine.frontend.phonemes import is_syllable

_INLINE = re.compile(
    r"([\u3400-\u9fff\U00020000-\U0003ffff]+)\{([A-Za-züÜ:]+[1-5](?: [A-Za-züÜ:]+[1-5])*)\}"
)


def plain_pinyin(text: str) -> list[str]:
    """Write syllables as the front end does: lower case, v for ü."""
    return text.lower().replace("u:", "v").replace("ü", "v").split()


def apply(mapped: Mapped) -> Mapped:
    """Give the characters before the braces their readings and drop the braces.

    What does not fit (more syllables than characters, no syllable of Mandarin) stays as it is.
    """
    if "{" not in mapped.text:
        return mapped
    edits: list[Edit] = []
    for match in _INLINE.finditer(mapped.text):
        characters, syllables = match.group(1), plain_pinyin(match.group(2))
        if len(syllables) > len(characters) or not all(map(is_syllable, syllables)):
            continue
        start = match.end(1) - len(syllables)
        piece = mapped.piece(start, match.end(1))
        readings = dict(enumerate(syllables))
        # The braces belong to the last character, so that a caption covers them.
        ends = [*piece.ends[:-1], mapped.ends[match.end() - 1]]
        edits.append((start, match.end(), Mapped(piece.text, piece.starts, ends, readings)))
    return mapped.edit(edits)
