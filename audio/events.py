"""What the audio thread saw, as messages for the daemon."""

from utterd.audio.messages import Anchor, Dropped, Ended, FromPlayer, Paused, Started, Underrun

Event = tuple[int, int, int, int, int, int, float]
"""kind, generation, position, ns, other_ns, count, missing_ms: `struct event` in core.h."""

_ANCHOR, _STARTED, _ENDED, _DROPPED, _UNDERRUN, _PAUSED = range(1, 7)


def to_message(event: Event) -> FromPlayer:
    """Turn an event of the audio thread into its message.

    Raises:
        ValueError: No event is of this kind.
    """
    kind, generation, position, ns, other_ns, count, missing_ms = event
    if kind == _ANCHOR:
        return Anchor(generation, position, ns)
    if kind == _STARTED:
        return Started(generation, ns, other_ns)
    if kind == _ENDED:
        return Ended(generation, position, ns)
    if kind == _DROPPED:
        return Dropped(generation, position, ns)
    if kind == _UNDERRUN:
        return Underrun(generation, position, missing_ms, count, ns)
    if kind == _PAUSED:
        return Paused(generation, position, ns)
    raise ValueError(f"the audio thread has no event {kind}")
