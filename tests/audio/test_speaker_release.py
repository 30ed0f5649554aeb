"""Letting the device of a real sound server go, and what the server makes of it."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import soxr

from tests.audio.rig import tone
from tests.audio.running import Running, cycle, let_go, runs
from tests.sound_server import SINK, Capture, SoundServer
from utterd.audio.messages import (
    Anchor,
    Configure,
    DeviceLost,
    Ended,
    Expect,
    Opened,
    Started,
    Underrun,
)
from utterd.audio.servers import NAME

VOICE_RATE = 24_000
AUDIBLE = 10 ** (-50 / 20)
LAST_BIT = 1 / 32767
PERIOD_NS = 10_000_000


@contextmanager
def running(server: SoundServer, **configure: object) -> Iterator[Running]:
    """A player that has opened the speaker."""
    player = Running(Configure(**configure), server.environment)
    try:
        player.wait(Opened)
        yield player
    finally:
        player.close()


@pytest.fixture(scope="module")
def sleeping_server() -> Iterator[SoundServer]:
    """A server whose speaker falls asleep."""
    server = SoundServer(sleeps=True)
    yield server
    server.close()


def first_sounds(capture: Capture) -> list[int]:
    """When each sound after more than 100 ms of silence reached the speaker."""
    loud = np.flatnonzero(np.abs(capture.samples) > AUDIBLE)
    begins = loud[np.diff(loud, prepend=-4801) > 4800]
    return [capture.time_ns(int(frame)) for frame in begins]


def test_the_server_knows_who_plays_what(sound_server: SoundServer) -> None:
    with running(sound_server, role="notification", release_after_s=0.2) as player:
        player.player.send(Expect(sound=True))
        properties = sound_server.nodes()[NAME]["props"]
        assert properties["media.role"] == "Notification"
        assert properties["application.name"] == properties["node.name"] == "utterd"
        assert properties["application.icon-name"] == "audio-speakers"
        assert properties["media.class"] == "Stream/Output/Audio"
        player.player.send(Expect(sound=False))
        let_go(player)
        assert NAME not in sound_server.nodes(), "others would stay low"


def test_no_role_is_none(sound_server: SoundServer) -> None:
    with running(sound_server):
        assert "media.role" not in sound_server.nodes()[NAME]["props"]


def test_the_role_ends_with_a_player_that_is_killed(sound_server: SoundServer) -> None:
    with running(sound_server, role="Navigation") as player:
        assert sound_server.nodes()[NAME]["props"]["media.role"] == "Navigation"
        player.player.kill()
        player.wait_gone()
        sound_server.wait_until_gone(NAME)


def test_the_speaker_falls_asleep_and_wakes_for_every_sample(sleeping_server: SoundServer) -> None:
    wave = tone(4800, rate=VOICE_RATE)
    with running(sleeping_server, release_after_s=0.2) as player:
        let_go(player)
        sleeping_server.wait_for_state(SINK, "suspended")
        after = len(player.messages)
        with sleeping_server.capture(passive=True) as recorder:
            for generation in (1, 2):
                player.writer.write(generation, 0, wave, VOICE_RATE, last=True)
                player.wait(Ended, lambda e, g=generation: e.generation == g)
                let_go(player)
                sleeping_server.wait_for_state(SINK, "suspended")
        told = player.messages[after:]
        assert not [m for m in told if isinstance(m, DeviceLost | Underrun)]
    capture = recorder.result
    whole = soxr.resample(wave, VOICE_RATE, 48_000, quality="HQ")
    for sound in runs(capture.samples):
        np.testing.assert_allclose(sound, np.trim_zeros(whole), rtol=0, atol=1e-6)
    firsts = first_sounds(capture)
    starts = [m.first_sound_ns for m in told if isinstance(m, Started)]
    assert len(firsts) == len(starts) == 2
    for first, told_ns in zip(firsts, starts, strict=True):
        assert abs(first - told_ns) < PERIOD_NS


def test_a_speaker_that_swallows_the_first_of_it_gets_noise_first(
    sleeping_server: SoundServer,
) -> None:
    wake_ms = 300.0
    wave = tone(4800, rate=VOICE_RATE)
    with running(sleeping_server, release_after_s=0.2, wake_ms=wake_ms, noise=True) as player:
        let_go(player)
        sleeping_server.wait_for_state(SINK, "suspended")
        with sleeping_server.capture(passive=True) as recorder:
            player.writer.write(1, 0, wave, VOICE_RATE, last=True)
            started = player.wait(Started)
            player.wait(Ended)
            let_go(player)
    heard = recorder.result
    first = int(np.argmax(np.abs(heard.samples) > AUDIBLE))
    noise = np.flatnonzero(heard.samples)
    awake_ms = (heard.time_ns(first) - heard.time_ns(int(noise[0]))) / 1e6
    # What comes before is the server's own silence; PortAudio's buffer begins with 20 ms of it.
    assert awake_ms > wake_ms - 10
    assert np.abs(heard.samples[: first - 480]).max() < 1.01 * LAST_BIT
    assert abs(heard.time_ns(first) - started.first_sound_ns) < PERIOD_NS


def test_a_speaker_that_is_kept_awake_never_gets_silence(sleeping_server: SoundServer) -> None:
    with running(sleeping_server, noise=True) as player:
        with sleeping_server.capture(passive=True) as recorder:
            player.listen(2.5)
            assert sleeping_server.nodes()[SINK]["state"] == "running"
        heard = recorder.result.samples
        assert len(heard) > 2 * 48_000
        assert np.abs(heard).max() < 1.01 * LAST_BIT
        assert np.count_nonzero(heard) > 0.95 * len(heard)


def test_unplugged_while_it_was_let_go(sound_server: SoundServer) -> None:
    """Noticed when it is needed; the sentence is spoken when there is a speaker again."""
    with running(sound_server, release_after_s=0.2) as player:
        after = let_go(player)
        sound_server.remove_sink()
        try:
            player.listen(0.7)
            assert not [m for m in player.messages[after:] if isinstance(m, DeviceLost)]
            player.player.send(Expect(sound=True))
            player.writer.write(1, 0, tone(4800, rate=VOICE_RATE), VOICE_RATE, last=True)
            lost = player.wait(DeviceLost, after=after)
            assert "takes no sound any more" in lost.message
        finally:
            sound_server.add_sink()
        come_back(player, after)


def test_the_server_dies_while_the_device_is_let_go(sound_server: SoundServer) -> None:
    with running(sound_server, release_after_s=0.2) as player:
        after = let_go(player)
        sound_server.kill()
        player.listen(0.5)
        assert not player.gone
        assert not [m for m in player.messages[after:] if isinstance(m, DeviceLost)]
        player.player.send(Expect(sound=True))
        player.writer.write(1, 0, tone(4800, rate=VOICE_RATE), VOICE_RATE, last=True)
        assert player.wait(DeviceLost, after=after).message
        sound_server.start()
        come_back(player, after)


def test_a_server_that_was_restarted_meanwhile_is_not_even_noticed(
    sound_server: SoundServer,
) -> None:
    with running(sound_server, release_after_s=0.2) as player:
        after = let_go(player)
        sound_server.kill()
        sound_server.start()
        player.writer.write(1, 0, tone(4800, rate=VOICE_RATE), VOICE_RATE, last=True)
        assert player.wait(Ended, after=after).samples == 4800
        assert not [m for m in player.messages[after:] if isinstance(m, DeviceLost)]


def test_many_cycles_on_a_real_device_leave_nothing_behind(sound_server: SoundServer) -> None:
    with running(sound_server, release_after_s=0.001) as player:
        let_go(player)
        counts = [cycle(player, 20) for _ in range(4)]
    descriptors, rss = zip(*counts, strict=True)
    assert len(set(descriptors)) == 1, counts
    # Where the machine is so busy that the device is searched for anew, that takes memory once.
    grown = [after - before for before, after in itertools.pairwise(rss)]
    assert min(grown) < 200_000, counts


def come_back(player: Running, told: int) -> None:
    """All that was written is said."""
    player.wait_until_back(told)
    assert player.wait(Anchor, after=told).position == 0
    assert player.wait(Ended, after=told).samples == 4800
