"""Every message crosses the channel unchanged; a new one without a value here fails."""

import socket
import typing

import msgspec
import pytest

from utterd.engine import channel, messages
from utterd.engine.channel import Channel
from utterd.engine.messages import FromWorker, ToWorker

VALUES = [
    messages.Configure(voice_dir="/voices/kokoro", lexicon="/l"),
    messages.Say(generation=7, utterance="a", text="你好\n“world”", offset=3, final=False),
    messages.Abandon(generation=9),
    messages.Forget(),
    messages.Shutdown(),
    messages.Ready("kokoro", 24_000, ["zh"], ["x"], ["rate"], "cpu", 1.0, 2.0, 0.5, parallel=False),
    messages.Broken("no"),
    messages.FirstAudio(1, 2, 3, 4, 5, 6, 7),
    messages.Segment(
        1, 0, 0, 2, 0, 100,
        [messages.Word(0, 2, 10)], [messages.Mark("m", 5)], [messages.Skipped(2, 3, "😀", "no")],
        True,
    ),
    messages.Pcm(1, 0, b"\0\1\2\3" * 19_200),
    messages.Finished(1, 100, 5.0, 0.5),
    messages.Abandoned(1, 50),
    messages.Failed(1, "internal", "why", 50),
    messages.Alive(1000, 5, True, 99, messages.CacheCounts(1, 2, 3, 4, 5, 6, 7, 8, "full")),
]  # fmt: skip


def test_every_message_has_a_value_here():
    known = set(typing.get_args(ToWorker)) | set(typing.get_args(FromWorker))
    assert {type(value) for value in VALUES} == known


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_it_crosses_unchanged(value):
    union = ToWorker if type(value) in typing.get_args(ToWorker) else FromWorker
    ours, theirs = channel.pair()
    near, far = Channel(ours, ToWorker), Channel(theirs, union)
    try:
        assert near.send(value)
        assert far.receive(wait=False) == value
        assert far.receive(wait=False) is None
    finally:
        near.close()
        far.close()


@pytest.fixture
def ends():
    ours, theirs = channel.pair()
    near, far = Channel(ours, FromWorker), Channel(theirs, ToWorker)
    yield near, far
    near.close()
    far.close()


def test_a_closed_end_is_the_end(ends):
    near, far = ends
    near.send(messages.Shutdown())
    near.close()
    assert far.receive(wait=True) == messages.Shutdown()
    with pytest.raises(EOFError):
        far.receive(wait=True)
    with pytest.raises(EOFError):
        far.send(messages.Broken("x"))


def test_a_full_buffer_does_not_block_who_will_not_wait(ends):
    near, _ = ends
    sent = 0
    while near.send(messages.Abandon(sent), wait=False):
        sent += 1
        assert sent < 1_000_000
    assert sent > 10


def test_what_is_too_large_is_refused_and_nothing_else_is_lost(ends):
    near, far = ends
    with pytest.raises(ValueError, match="too large"):
        near.send(messages.Say(1, "a", "啊" * 100_000))
    near.send(messages.Say(1, "a", "啊" * 48_000))
    assert len(far.receive(wait=False).text) == 48_000


@pytest.mark.parametrize("packet", [b"x", b"\x81\xa4type\xa3Nix", b"\x80"])
def test_what_is_not_known_is_named(packet, ends):
    near, far = ends
    with socket.fromfd(near.fileno(), socket.AF_UNIX, socket.SOCK_SEQPACKET) as raw:
        raw.send(packet)
    with pytest.raises(msgspec.DecodeError):
        far.receive(wait=False)
