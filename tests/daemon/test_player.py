"""How long a player may say nothing."""

import time

import pytest

from utterd.audio.messages import Opened, Released
from utterd.daemon.config import Config
from utterd.daemon.player import Player
from utterd.daemon.supervisor import State

OPENED = Opened("spk", 48_000, 2, 480, 10.0, True, False, 1)


class StandIn:
    """In the place of a child process: one that has said nothing for some seconds."""

    def __init__(self, silent_s: float) -> None:
        self.state = State.READY
        self.heard_ns = time.monotonic_ns() - int(silent_s * 1e9)
        self.ready_ns = self.heard_ns
        self.killed = False

    def kill(self, reason: str) -> None:
        self.killed = True


class Listener:
    """Takes the player's news."""

    def device_changed(self, opened: object, lost: object) -> None: ...


@pytest.mark.parametrize(
    ("said", "silent_s", "is_dead"),
    [
        ([OPENED], 2.0, False),
        ([OPENED], 4.0, True),
        ([], 8.0, False),  # it opens the device, and gives up after 7 s by itself
        ([], 10.0, True),
        ([OPENED, Released(1)], 8.0, False),  # it may be opening it again
        ([OPENED, Released(1)], 10.0, True),
        ([OPENED, Released(1), OPENED], 4.0, True),
    ],
)
def test_a_player_may_be_silent_for_longer_while_it_opens_a_device(said, silent_s, is_dead):
    player = Player(Config(), None, -1, seats=None, listener=Listener())
    player.child = StandIn(silent_s)
    for message in said:
        player._said(message)
    player.check(idle=False)
    assert player.child.killed is is_dead
