"""Markdown and HTML in plain text: what should be said stays, the marks go."""

import html
import re

from utterd.engine.frontend.mapped import Edit, Mapped

_ANY = re.compile(r"[*_`#<>&\[\]|~>]|^[ \t]*[-+] |^[ \t]*\d+\.[ \t]|---", re.M)


def _drop_marks(pattern: str, group: int = 1, flags: int = 0) -> tuple[re.Pattern[str], int]:
    return re.compile(pattern, flags), group


# Pattern and the group of it that stays.
_KEPT = [
    _drop_marks(r"```[\w+-]*\n?(.*?)(?:```|\Z)", flags=re.S),
    _drop_marks(r"!\[([^\[\]\n]{0,300})\]\([^()\n]{0,500}\)"),
    _drop_marks(r"\[([^\[\]\n]{1,300})\]\((?:[^()\n]|\([^()\n]{0,200}\)){0,500}\)"),
    _drop_marks(r"\[([^\[\]\n]{1,300})\]\[[^\[\]\n]{0,100}\]"),
    _drop_marks(r"`([^`\n]{1,500})`"),
    _drop_marks(r"\*\*\*(?=\S)([^*]{1,1000}?)(?<=\S)\*\*\*", flags=re.S),
    _drop_marks(r"\*\*(?=\S)((?:[^*]|\*(?!\*)){1,1000}?)(?<=\S)\*\*", flags=re.S),
    _drop_marks(r"__(?=\S)([^_\n]{1,500}?)(?<=\S)__(?!\w)"),
    _drop_marks(r"(?<![\dA-Za-z*])\*(?=[^\s*])([^*\n]{1,500}?)(?<=\S)\*(?![\d*])"),
    _drop_marks(r"(?<!\w)_(?=\S)([^_\n]{1,500}?)(?<=\S)_(?!\w)"),
    _drop_marks(r"~~(?=\S)([^~\n]{1,500}?)(?<=\S)~~"),
    _drop_marks(r"^[ \t]{0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$", flags=re.M),
    _drop_marks(r"^[ \t]*(?:>[ \t]?)+(.*)$", flags=re.M),
    _drop_marks(r"^[ \t]*[-*+•·][ \t]+(?:\[[ xX]\][ \t]+)?(.*)$", flags=re.M),
    _drop_marks(r"<(?:https?://|mailto:)?([^<>\s]{1,100}\.[^<>\s]{1,300})>"),
]
_RULE = re.compile(
    r"^[ \t]{0,8}(?:[-*_=][ \t]{0,8}){3,200}$"
    r"|^[ \t]{0,8}\|?(?:[ \t]{0,8}:?-{2,100}:?[ \t]{0,8}\|)+[ \t]{0,8}:?-{0,100}:?[ \t]{0,8}$",
    re.M,
)
_SILENT_TAG = re.compile(
    r"<(script|style|head|svg)\b[^<>]*>.{0,20000}?</\1\s*>|<!--.{0,5000}?-->", re.S | re.I
)
_BREAK_TAG = re.compile(
    r"<\s*/?\s*(?:br|p|div|li|ul|ol|tr|h[1-6]|table|hr|blockquote|section|article)\b[^<>]*>", re.I
)
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]{0,30}(?:\s[^<>=]{1,100}=[^<>]{0,500})?\s?/?>")
_CELL = re.compile(r"[ \t]*\|[ \t]*")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z]{2,10});")


def strip(mapped: Mapped) -> Mapped:
    """Return the text without Markdown and HTML."""
    if not _ANY.search(mapped.text):
        return mapped
    if "<" in mapped.text:
        mapped = _replace(mapped, _SILENT_TAG, " ")
        mapped = _replace(mapped, _BREAK_TAG, "\n")
        mapped = _replace(mapped, _TAG, "")
    mapped = _replace(mapped, _RULE, "")
    for pattern, group in _KEPT:
        mapped = _keep(mapped, pattern, group)
    if re.search(r"^[ \t]*\|[^\n]*\|[ \t]*$", mapped.text, re.M):
        mapped = _replace(mapped, _CELL, "，")
    return _entities(mapped) if "&" in mapped.text else mapped


def _replace(mapped: Mapped, pattern: re.Pattern[str], new: str) -> Mapped:
    edits: list[Edit] = [(m.start(), m.end(), new) for m in pattern.finditer(mapped.text)]
    return mapped.edit(edits)


def _keep(mapped: Mapped, pattern: re.Pattern[str], group: int) -> Mapped:
    edits: list[Edit] = []
    for match in pattern.finditer(mapped.text):
        start, end = match.span(group)
        if match.start() < start:
            edits.append((match.start(), start, ""))
        if end < match.end():
            edits.append((end, match.end(), ""))
    return mapped.edit(edits)


def _entities(mapped: Mapped) -> Mapped:
    edits: list[Edit] = []
    for match in _ENTITY.finditer(mapped.text):
        said = html.unescape(match.group())
        if said != match.group():
            edits.append((match.start(), match.end(), said))
    return mapped.edit(edits)
