"""What a rule of normalisation is, and how a list of them is applied."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from utterd.engine.frontend.chinese_numbers import DIGITS
from utterd.engine.frontend.mapped import Edit, Mapped

Say = Callable[[re.Match[str], Mapped], "str | Mapped | None"]
"""Turns a match into what is said; None leaves it as it is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A written form and how it is said. `near` are characters one of which must be in the text."""

    pattern: re.Pattern[str]
    say: Say
    near: frozenset[str]


def rule(pattern: str, say: Say, near: str = "0123456789", flags: int = 0) -> Rule:
    """Make a rule from the source of its pattern."""
    return Rule(re.compile(pattern, flags), say, frozenset(near))


def apply(mapped: Mapped, rules: Sequence[Rule]) -> Mapped:
    """Apply rules in order; each sees what the ones before it left."""
    there = frozenset(mapped.text)
    for one in rules:
        if one.near and one.near.isdisjoint(there):
            continue
        edits: list[Edit] = []
        for match in one.pattern.finditer(mapped.text):
            said = one.say(match, mapped)
            if said is not None:
                edits.append((match.start(), match.end(), said))
        if edits:
            mapped = mapped.edit(edits)
            there = frozenset(mapped.text)
    return mapped


def code(mapped: Mapped, start: int, end: int) -> Mapped:
    """Read the digits in a range one by one, as one tells a telephone number: 一 is said yāo.

    Letters stay (in capitals), everything else is dropped.
    """
    text: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    readings: dict[int, str] = {}
    for i in range(start, end):
        c = mapped.text[i]
        if "0" <= c <= "9":
            if c == "1":
                readings[len(text)] = "yao1"
            c = DIGITS[int(c)]
        elif c.isascii() and c.isalpha():
            c = c.upper()
        else:
            continue
        text.append(c)
        starts.append(mapped.starts[i])
        ends.append(mapped.ends[i])
    return Mapped("".join(text), starts, ends, readings)
