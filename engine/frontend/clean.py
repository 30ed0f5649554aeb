"""The first stage: one way to write each character, nothing that cannot be spoken."""

import re
import unicodedata

from utterd.engine.frontend.contract import Skipped
from utterd.engine.frontend.mapped import Edit, Mapped

# Full-width letters, digits and signs are written narrow; punctuation stays as it is.
_NARROW = {
    chr(code): chr(code - 0xFEE0)
    for code in range(0xFF01, 0xFF5F)
    if chr(code) not in "，；：！？（）［］｛｝"
}
_SPACES = dict.fromkeys(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t\v\f\x85",
    " ",
)
_LINES = {"\r": "\n", "\u2028": "\n", "\u2029": "\n"}
_MAP = {
    **_NARROW,
    **_SPACES,
    **_LINES,
    "’": "'",
    "‘": "'",
    "ʼ": "'",
    "｀": "`",
    "‐": "-",
    "‑": "-",
    "﹣": "-",
    "｡": "。",
    "､": "、",
    "﹐": "，",
    "﹑": "、",
    "﹒": "。",
    "﹔": "；",
    "﹕": "：",
    "﹖": "？",
    "﹗": "！",
    "〇": "零",
}
_ODD = re.compile(
    "[A-Za-z][\u0300-\u036f]+|[^\u0020-\u007e\u3001-\u3004\u3008-\u303f\u4e00-\u9fff\n，；：！？（）“”…—·～¥￥°℃²³]"
)
_INVISIBLE = frozenset(
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
)
_KEPT_FORMS = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ½⅓⅔¼¾⅕⅛⅜⅝⅞℃℉№™…㎡㎥㎞㎝㎜㎏㎎㏄ºª")


def clean(mapped: Mapped) -> tuple[Mapped, list[Skipped]]:
    """Return the text in one spelling and what had to be left out."""
    text = mapped.text
    edits: list[Edit] = []
    skipped: list[Skipped] = []
    last = 0
    for match in _ODD.finditer(text):
        i, end = match.span()
        if i < last:
            continue
        while end < len(text) and unicodedata.combining(text[end]) and text[end] != "\u20e3":
            end += 1
        last = end
        # 々 stands for the character before it.
        new = _form(text[i - 1] if text[i] == "々" and i else text[i:end])
        if new is None:
            start, stop = mapped.span(i, end)
            skipped.append(Skipped(start, stop, text[i:end], "cannot be spoken"))
            edits.append((i, end, " "))
        elif new != text[i:end]:
            edits.append((i, end, new))
    return mapped.edit(edits), skipped


def _form(cluster: str) -> str | None:
    """Return how a character (with its marks) is written from here on, None if it has no sound."""
    c = cluster[0]
    if c in _MAP:
        return _MAP[c]
    if c in _INVISIBLE:
        return ""
    category = unicodedata.category(c)
    if category in ("Cs", "Co", "Cn"):
        return None
    if category == "Cc":
        return " "
    circled = "\u2460" <= c <= "\u2473" or "\u2776" <= c <= "\u277f"
    if c in _KEPT_FORMS or category == "Nl" or circled:
        return cluster
    if category == "So":
        form = unicodedata.normalize("NFKC", c)
        return form if len(form) == 1 and form.isalpha() else cluster
    if category == "Nd":
        return str(unicodedata.decimal(c))
    form = unicodedata.normalize("NFKC", cluster)
    if "⁄" in form:
        return cluster
    return _latin(form) if form[0].isalpha() else form


def _latin(form: str) -> str:
    """Write accented Latin letters plainly: café is cafe."""
    plain: list[str] = []
    for c in unicodedata.normalize("NFD", form):
        if unicodedata.combining(c) and plain and plain[-1].isascii():
            continue
        plain.append(_LETTERS.get(c, c))
    return unicodedata.normalize("NFC", "".join(plain))


_LETTERS = {
    "ß": "ss",
    "æ": "ae",
    "Æ": "AE",
    "œ": "oe",
    "Œ": "OE",
    "ø": "o",
    "Ø": "O",
    "ł": "l",
    "Ł": "L",
    "đ": "d",
    "Đ": "D",
    "ð": "th",
    "þ": "th",
    "ı": "i",
}
