"""Addresses of the net: URLs, e-mail, IP, file names."""

import re

from utterd.engine.frontend.chinese_numbers import digits
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise.rule import Rule, rule

_SIGNS = {
    ".": "点", "/": "斜杠", "-": "杠", "_": "下划线", "@": "艾特", "?": "问号", "=": "等于",
    "&": "和", "#": "井号", ":": "冒号", "~": "波浪号", "%": "百分号", "+": "加",
}  # fmt: skip
_DOMAINS = (
    "com|cn|org|net|io|gov|edu|top|cc|tv|ai|me|app|dev|info|biz|xyz|hk|tw|jp|uk|us|eu|de|fr|co|so"
)
_HOST = (
    rf"[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*\.(?:{_DOMAINS})(?![A-Za-z0-9])(?!\.[A-Za-z])"
)
_PATH = r"(?::\d+)?(?:/[A-Za-z0-9._~%/?=&#:@+-]*[A-Za-z0-9/=_])?/?"
_SPELLED = frozenset(["www", "http", "https", "ftp", "html", "php", "api"])


_ENGLISH_SIGNS = {
    ".": "dot", "/": "slash", "-": "dash", "_": "underscore", "@": "at", "?": "question mark", "=": "equals",
    "&": "and", "#": "hash", ":": "colon", "~": "tilde", "%": "percent", "+": "plus",
}  # fmt: skip


def _spell(text: str, signs: dict[str, str] = _SIGNS) -> str:
    """Say each sign by its name; keep words apart."""
    out = []
    for part in re.findall(r"[A-Za-z]+|\d+|.", text):
        if part.isdecimal():
            out.append(digits(part) if signs is _SIGNS else " ".join(part))
        elif part.isalpha():
            spelled = part.lower() in _SPELLED or (
                len(part) <= 3 and not re.search("[aeiouy]", part)
            )
            out.append(" ".join(part.upper()) if spelled and len(part) > 1 else part)
        else:
            out.append(signs.get(part, ""))
    return " ".join(p for p in out if p)


def _url(match: re.Match[str], mapped: Mapped) -> str:
    return _spell(re.sub(r"^[a-z]+://", "", match.group()).rstrip("/"))


def _mail(match: re.Match[str], mapped: Mapped) -> str:
    return _spell(match.group())


def _english_url(match: re.Match[str], mapped: Mapped) -> str:
    return _spell(re.sub(r"^[a-z]+://", "", match.group()).rstrip("/"), _ENGLISH_SIGNS)


def _ip(match: re.Match[str], mapped: Mapped) -> str | None:
    parts = match.group(1).split(".")
    if any(int(p) > 255 for p in parts):
        return None
    port = f"冒号{digits(match.group(2)[1:])}" if match.group(2) else ""
    return "点".join(digits(p) for p in parts) + port


RULES: list[Rule] = [
    rule(r"[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", _mail, near="@"),
    rule(rf"(?:https?|ftp)://(?:[A-Za-z0-9.-]+){_PATH}", _url, near=":"),
    rule(rf"(?<![A-Za-z0-9@.])(?:www\.[A-Za-z0-9.-]+|{_HOST}){_PATH}", _url, near="."),
    rule(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(:\d{1,5})?(?![\d.]*\d)", _ip),
]
ENGLISH_RULES: list[Rule] = [Rule(one.pattern, _english_url, one.near) for one in RULES[:3]]
"""The same for English sentences."""
