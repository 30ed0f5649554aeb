"""Markdown and HTML in plain text: what should be said stays, the marks go."""

import html
import re

from utterd.engine.frontend.mapped import Edit, Mapped

_ANY = re.compile(r"[*_`#<>&\[\]|~>]|^\s*[-+] |^\s*\d+\.\s|---", re.M)


def _drop_marks(pattern: str, group: int = 1, flags: int = 0) -> tuple[re.Pattern[str], int]:
    return re.compile(pattern, flags), group


# Pattern and the group of it that stays.
_KEPT = [
    _drop_marks(r"```[\w+-]*\n?(.*?)(?:```|\Z)", flags=re.S),
    _drop_marks(r"!\[([^\]\n]*)\]\([^)\n]*\)"),
    _drop_marks(r"\[([^\]\n]+)\]\((?:[^()\n]|\([^()\n]*\))*\)"),
    _drop_marks(r"\[([^\]\n]+)\]\[[^\]\n]*\]"),
    _drop_marks(r"`([^`\n]+)`"),
    _drop_marks(r"\*\*\*(?=\S)(.+?)(?<=\S)\*\*\*", flags=re.S),
    _drop_marks(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", flags=re.S),
    _drop_marks(r"__(?=\S)(.+?)(?<=\S)__(?!\w)"),
    _drop_marks(r"(?<![\dA-Za-z*])\*(?=[^\s*])([^*\n]+?)(?<=\S)\*(?![\d*])"),
    _drop_marks(r"(?<!\w)_(?=\S)([^_\n]+?)(?<=\S)_(?!\w)"),
    _drop_marks(r"~~(?=\S)(.+?)(?<=\S)~~"),
    _drop_marks(r"^[ \t]{0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$", flags=re.M),
    _drop_marks(r"^[ \t]*(?:>[ \t]?)+(.*)$", flags=re.M),
    _drop_marks(r"^[ \t]*[-*+•·][ \t]+(?:\[[ xX]\][ \t]+)?(.*)$", flags=re.M),
    _drop_marks(r"<(?:https?://|mailto:)?([^<>\s]+\.[^<>\s]+)>"),
]
_RULE = re.compile(
    r"^[ \t]*(?:[-*_=][ \t]*){3,}$|^[ \t]*\|?(?:[ \t]*:?-{2,}:?[ \t]*\|)+[ \t]*:?-*:?[ \t]*$", re.M
)
_SILENT_TAG = re.compile(r"<(script|style|head|svg)\b[^>]*>.*?</\1\s*>|<!--.*?-->", re.S | re.I)
_BREAK_TAG = re.compile(
    r"<\s*/?\s*(?:br|p|div|li|ul|ol|tr|h[1-6]|table|hr|blockquote|section|article)\b[^<>]*>", re.I
)
_TAG = re.compile(
    r"</?[A-Za-z][A-Za-z0-9-]*(?:\s+[A-Za-z-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s<>]+))?)*\s*/?>"
)
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
    if re.search(r"^\s*\|.*\|\s*$", mapped.text, re.M):
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
