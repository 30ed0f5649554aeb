"""Where a sentence or a clause may end, in text as it is written."""

import re

_HARD = "。！？!?；;…\n"
_SOFT = "，,：:"
_CLOSING = "”’」』）)】》\"'〉〕］]"
_OPENING = "“‘「『（(【《〈〔［["
_ADDRESS = re.compile(r"(?:://|www\.)[\x21-\x7e]*$")
_ABBREVIATION = re.compile(
    r"(?:^|[^A-Za-z])(?:Mr|Mrs|Ms|Dr|Prof|St|Ave|Rd|Jr|Sr|No|vs|etc|Inc|Ltd|Co|Corp|approx|dept|Fig|Vol|pp|e\.g|i\.e|a\.m|p\.m|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|[A-Z]|(?:[A-Z]\.)+[A-Z])$"
)


def ends(text: str, *, final: bool = True, soft: bool = True) -> list[tuple[int, bool]]:
    """Return the ends of clauses: index behind the marks, and whether a sentence ends there.

    With `final` false the text goes on: an end that the next character could undo is left out.
    """
    found: list[tuple[int, bool]] = []
    i, n = 0, len(text)
    while i < n:
        c = text[i]
        hard = c in _HARD or c == "."
        if not hard and not (soft and c in _SOFT):
            i += 1
            continue
        if c in ".,:!?;" and not _ends_here(text, i, final=final):
            i += 1
            continue
        end = i + 1
        while end < n and (text[end] in _HARD or text[end] == "." or text[end] in _CLOSING):
            if text[end] in "\"'" and not _closes(text, end):
                break
            hard = hard or text[end] in _HARD
            end += 1
        while end < n and text[end] in " \t":
            end += 1
        found.append((end, hard))
        i = end
    return found


def _closes(text: str, at: int) -> bool:
    """A straight quote closes where an odd number of them came before."""
    return text.count(text[at], 0, at) % 2 == 1


def _ends_here(text: str, i: int, *, final: bool) -> bool:
    """Tell whether an ASCII mark ends a clause: not in 3.5, 1,000, 8:30, e.g., a.com or https://."""
    c = text[i]
    if i + 1 >= len(text):
        return final
    following = text[i + 1]
    before = text[i - 1] if i else ""
    if c in "!?" and following.isascii() and following.isalnum():
        return not _ADDRESS.search(text[max(0, i - 200) : i])
    if c in "!?;":
        return c != ";" or not re.search(r"&[#\w]{1,8}$", text[max(0, i - 9) : i])
    if following.isdecimal() and (before.isdecimal() or c == "."):
        return False
    if c == ".":
        if _ABBREVIATION.search(text[max(0, i - 12) : i]):
            return False
        if before.isdecimal() and re.search(r"(?:^|\n)\s*\d{1,2}$", text[max(0, i - 4) : i]):
            return False
        if following in " \n\t" + _CLOSING:
            rest = text[i + 1 :].lstrip(" \t" + _CLOSING)
            return (final or bool(rest)) and not rest[:1].islower()
        return not (following.isascii() and (following.isalnum() or following in "/_-@."))
    if c == ":":
        return following != "/" and not (
            before.isascii() and before.isalnum() and following.isascii() and following.isalnum()
        )
    return not (before.isdecimal() and following.isdecimal())
