"""What is remembered of utterances that are over."""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TypeVar

from utterd.daemon import events
from utterd.daemon.protocol import Speak

KEPT = 1000
"""Ended utterances, and clients, that are remembered."""


@dataclass(slots=True)
class Records:
    """Terminal events by utterance, and each client's last utterance."""

    terminal: OrderedDict[tuple[str, str], events.Terminal] = field(default_factory=OrderedDict)
    counts: Counter[str] = field(default_factory=Counter)
    """Terminal events by name."""
    last_of: OrderedDict[str, Speak] = field(default_factory=OrderedDict)

    def ended(self, key: tuple[str, str], event: events.Terminal) -> None:
        """An utterance is over."""
        self.counts[str(event.__struct_config__.tag)] += 1
        _keep(self.terminal, key, event)

    def spoke(self, client: str, command: Speak) -> None:
        """A client spoke."""
        _keep(self.last_of, client, command)


K = TypeVar("K")
V = TypeVar("V")


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > KEPT:
        kept.popitem(last=False)
