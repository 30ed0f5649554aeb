"""Written forms to spoken ones, one family of rules a file."""

from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise import (
    codes,
    currency,
    dates,
    maths,
    names,
    plain,
    times,
    units,
    web,
)
from utterd.engine.frontend.normalise.rule import Rule, apply

RULES: list[Rule] = [
    *web.RULES,
    *dates.RULES,
    *times.RULES,
    *codes.RULES,
    *currency.RULES,
    *maths.SUMS,
    *units.RULES,
    *maths.RULES,
    *names.RULES,
    *plain.RULES,
]
"""The families in the order in which they get a text: the special before the general."""


def normalise(mapped: Mapped) -> Mapped:
    """Rewrite numbers, units and signs of a Chinese sentence as they are said."""
    return apply(mapped, RULES)
