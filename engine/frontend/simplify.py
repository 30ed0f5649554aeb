"""Traditional characters to simplified ones, character for character."""

import re

import opencc

from utterd.engine.frontend.mapped import Mapped

# 著 is 着 behind a verb; in these words it is itself.
_WRITTEN = re.compile(
    r"(?:显|卓|昭|编|土|名|专|论|原|巨|遗|合|拙|译|所|新|旧|大|力|撰|主|执|自)著|著(?=名|作|者|称|书|述|录|有|文|录|于|绩|《|：)"
)

_HEAVEN = re.compile(r"乾(?=[清隆坤陵县縣元卦道宁寧符嘉宗])|(?<=[康雍])乾")


class Simplify:
    """Converts with OpenCC's table t2s; lengths never change."""

    def __init__(self) -> None:
        self._converter = opencc.OpenCC("t2s")

    def __call__(self, mapped: Mapped) -> Mapped:
        """Return the text in simplified characters."""
        text = mapped.text
        if text.isascii():
            return mapped
        simple = self._converter.convert(text)
        if len(simple) != len(text):
            simple = "".join(self._one(c) for c in text)
        if "乾" in text:
            simple = _heaven(text, simple)
        if "著" in simple:
            simple = _aspect(simple)
        return mapped if simple == text else mapped.edit([(0, len(text), simple)])

    def _one(self, c: str) -> str:
        found = self._converter.convert(c)
        return found if len(found) == 1 else c


def _heaven(text: str, simple: str) -> str:
    """Keep 乾 where it is qián, which simplified text writes so as well."""
    kept = {i for match in _HEAVEN.finditer(text) for i in range(*match.span())}
    return "".join(
        "乾" if old == "乾" and i in kept else new
        for i, (old, new) in enumerate(zip(text, simple, strict=True))
    )


def _aspect(text: str) -> str:
    """Write the 著 that follows a verb as 着."""
    kept = [range(*match.span()) for match in _WRITTEN.finditer(text)]
    return "".join(
        "着" if c == "著" and i > 0 and not any(i in span for span in kept) else c
        for i, c in enumerate(text)
    )
