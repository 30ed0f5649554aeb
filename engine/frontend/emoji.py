"""Emoji: said by name, silent, or skipped and reported."""

import re
from functools import cache
from typing import Literal

from utterd.engine.frontend.contract import Skipped
from utterd.engine.frontend.data_files import read_lines
from utterd.engine.frontend.mapped import Edit, Mapped

EmojiPolicy = Literal["name", "silent", "skip"]

_ONE = (
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2190-\u21ff\u2300-\u23ff"
    "\u25a0-\u25ff\u3030\u303d\u3297\u3299\u00a9\u00ae\u2122\u203c\u2049]"
)
_MODIFIER = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\u20e3]"
_EMOJI = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_ONE}{_MODIFIER}*(?:\u200d{_ONE}{_MODIFIER}*)*|[\ufe0e\ufe0f\u200d]+"
)
# Signs of these ranges that other stages read or that are mere typography.
_NOT_EMOJI = frozenset("→←↑↓↔⇒⇔→°△☆★○●◎◇◆□■▲▼①②③④⑤⑥⑦⑧⑨⑩❶❷❸❹❺❻❼❽❾❿")


@cache
def _names() -> dict[str, str]:
    return dict(line.split("\t") for line in read_lines("emoji.tsv"))


def speak(mapped: Mapped, policy: EmojiPolicy) -> tuple[Mapped, list[Skipped]]:
    """Replace emoji as `policy` says and return what was skipped."""
    if mapped.text.isascii() or not _EMOJI.search(mapped.text):
        return mapped, []
    edits: list[Edit] = []
    skipped: list[Skipped] = []
    for match in _EMOJI.finditer(mapped.text):
        sign = match.group()
        if sign in _NOT_EMOJI or "\u2460" <= sign[0] <= "\u2473":
            continue
        if sign.endswith("\u20e3"):
            edits.append((match.start(), match.end(), sign[0]))
            continue
        if not sign.strip("\ufe0e\ufe0f\u200d"):
            edits.append((match.start(), match.end(), ""))
            continue
        name = _name(sign) if policy == "name" else None
        if name:
            edits.append((match.start(), match.end(), f"，{name}，"))
            continue
        if policy != "silent":
            start, end = mapped.span(match.start(), match.end())
            reason = "emoji" if policy == "skip" else "emoji without a name"
            skipped.append(Skipped(start, end, sign, reason))
        edits.append((match.start(), match.end(), " "))
    return mapped.edit(edits), skipped


def _name(sign: str) -> str | None:
    names = _names()
    plain = re.sub(_MODIFIER, "", sign)
    return names.get(plain) or names.get(plain[0])
