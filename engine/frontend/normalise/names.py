"""Names with digits: versions, models, standards."""

import re

from utterd.engine.frontend.chinese_numbers import cardinal, digits
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise.rule import Rule, code, rule

_TO = frozenset(
    [
        "P2P",
        "O2O",
        "B2B",
        "B2C",
        "C2C",
        "C2B",
        "B2G",
        "G2C",
        "D2C",
        "F2F",
        "M2M",
        "P2B",
        "C2M",
        "E2E",
        "V2X",
        "V2V",
        "V2I",
        "V2G",
        "B2E",
        "G2G",
        "A2A",
        "T2T",
        "I2C",
    ]
) - {"I2C"}


def _parts(text: str) -> str:
    """Say the parts of a version: 1.12.3 is 一点十二点三."""
    parts = text.split(".")
    if len(parts) == 2:
        return f"{cardinal(parts[0])}点{digits(parts[1])}"
    return "点".join(cardinal(p) if p[0] != "0" or p == "0" else digits(p) for p in parts)


def _version(match: re.Match[str], mapped: Mapped) -> str:
    return (
        f"V{_parts(match.group(1))}" if "." in match.group(1) else f"V{_model('V', match.group(1))}"
    )


def _model(word: str, number: str) -> str:
    """Say the number of a model: up to two digits as a number, more digit by digit."""
    if number[0] == "0" and len(number) > 1:
        return digits(number)
    if len(number) <= 2:
        return (
            digits(number)
            if len(number) == 2 and word.islower() and word not in _NUMBERED
            else cardinal(number)
        )
    return cardinal(number) if number.endswith("00") and len(number) == 3 else digits(number)


_NUMBERED = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "log",
        "iphone",
        "ipad",
        "ios",
        "win",
        "windows",
        "android",
        "mate",
        "note",
        "python",
        "java",
        "office",
        "vista",
    ]
)


def _named(match: re.Match[str], mapped: Mapped) -> Mapped | str:
    word, number, fraction = match.group("word", "number", "fraction")
    if fraction:
        return word + _parts(number + fraction)
    if len(number) >= 4 or (len(number) == 3 and not number.endswith("00")):
        said = code(mapped, match.start("number"), match.end("number"))
        head = mapped.piece(match.start("word"), match.end("word"))
        return Mapped(head.text + said.text, head.starts + said.starts, head.ends + said.ends,
                      {len(head.text) + i: r for i, r in said.readings.items()})  # fmt: skip
    return word + _model(word, number)


def _swap(match: re.Match[str], mapped: Mapped) -> str | None:
    text = match.group()
    return f"{text[0]} to {text[2]}" if text.upper() in _TO else None


def _resolution(match: re.Match[str], mapped: Mapped) -> str:
    return digits(match.group(1))


def _hyphen(match: re.Match[str], mapped: Mapped) -> str:
    return " "


def _plus(match: re.Match[str], mapped: Mapped) -> str:
    return match.group(1) + "加" * len(match.group(2))


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

RULES: list[Rule] = [
    rule(r"(?<![A-Za-z])([A-Z])\.(\d{3,})(?![\d.])", lambda m, t: f"{m.group(1)}点{digits(m.group(2))}", near="."),
    rule(r"(?<=[A-Za-z])(?<!No)(?<!NO)(?<!no)\.\s?(?=\d+(?!\d*\.\d))", lambda m, t: "", near="."),
    rule(r"(?<![A-Za-z.])(?:[A-Z]\.)+[A-Z](?![A-Za-z])\.?(?!$)", lambda m, t: m.group().replace(".", ""), near="."),
    rule(r"(?<![A-Za-z\d])[A-Za-z]2[A-Za-z](?![A-Za-z\d])", _swap, near="2"),
    rule(r"(?<![A-Za-z])[vV](?:er\.?)?\s?(\d+(?:\.\d+)*)(?![\d])", _version, near="vV"),
    rule(r"(?<![\d.])(\d+(?:\.\d+){2,})(?![\d.]*\d)", lambda m, t: _parts(m.group(1)), near="."),
    rule(r"(?<=版本)(?:号?[:：为是]?\s?)(\d+\.\d+)(?!\d)", lambda m, t: m.group()[: m.start(1) - m.start()] + _parts(m.group(1)), near="."),
    rule(r"(?<![\d.])(480|540|576|720|1080|1440|2160|4320)(?=[pPiI](?![A-Za-z]))", _resolution, near="pPiI"),
    rule(r"(?P<word>[A-Za-z]+)[-–]?(?P<number>\d+)(?P<fraction>(?:\.\d+)*)(?![\d]|,\d{3})", _named, near=_LETTERS),
    rule(r"(?<![A-Za-z\d])([A-Z]|[a-z](?=\+\+))(\+{1,2})(?![\dA-Za-z])", _plus, near="+"),
    rule(r"(?<=[A-Za-z])-(?=[零一二三四五六七八九十百两])", lambda m, t: "", near="-"),
    rule(r"(?<=[a-z])-(?=[a-z])", _hyphen, near="-"),
]  # fmt: skip
