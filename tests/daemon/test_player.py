"""How long a player may say nothing, and what it counts over several lives."""

import time

import pytest

from utterd.audio.messages import Alive, FromPlayer, Opened, Released, Underrun
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

    def __init__(self) -> None:
        self.heard: list[FromPlayer] = []

    def device_changed(self, opened: object, lost: object) -> None: ...

    def player_said(self, message: FromPlayer) -> None:
        self.heard.append(message)


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


def test_underruns_are_counted_when_they_are_told_and_over_all_lives():
    listener = Listener()
    player = Player(Config(), None, -1, seats=None, listener=listener)
    player.child = StandIn(0.0)
    player._said(Underrun(1, 5, 9.0, 1, 1))
    assert player.underruns == 1, "before it says so once a second"
    player._said(Alive(rss_bytes=1, underruns=2, ns=1))  # it tells not all that it counts
    assert player.underruns == 2
    player._ended("killed")
    player._said(Underrun(2, 5, 9.0, 1, 1))
    assert player.underruns == 3
    assert [message.count for message in listener.heard] == [1, 3]
