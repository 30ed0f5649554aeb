"""What a new utterance does to those that are there: SSIP's five priorities as a table."""

from enum import Enum

from utterd.daemon.utterance import Priority


class Effect(Enum):
    """On one that is there already."""

    NONE = "none"
    DISPLACE = "displace"
    """Cut it; it goes on afterwards. Those that wait simply wait longer."""
    CANCEL = "cancel"


_P = Priority

TABLE: dict[tuple[Priority, Priority], Effect] = {
    (_P.important, _P.message): Effect.DISPLACE,
    (_P.important, _P.text): Effect.DISPLACE,
    (_P.important, _P.notification): Effect.CANCEL,
    (_P.message, _P.text): Effect.DISPLACE,
    (_P.message, _P.notification): Effect.CANCEL,
    (_P.text, _P.text): Effect.CANCEL,
    (_P.text, _P.notification): Effect.CANCEL,
    (_P.notification, _P.notification): Effect.CANCEL,
    (_P.progress, _P.progress): Effect.CANCEL,
}
"""(new, there): what happens, whether it sounds or waits. Not listed: nothing."""

CUTS_PROGRESS = frozenset({_P.important, _P.message, _P.text, _P.notification})
"""A progress report that sounds is cut by all others; one that waits is kept as the last."""


def effect_on(new: Priority, there: Priority, *, sounds: bool) -> Effect:
    """What an arrival of priority `new` does to an utterance of priority `there`.

    Args:
        new: of the arrival.
        there: of one that waits or sounds.
        sounds: whether that one sounds, or will next.
    """
    if there is _P.progress and sounds:
        return Effect.CANCEL if new in CUTS_PROGRESS else Effect.NONE
    return TABLE.get((new, there), Effect.NONE)
