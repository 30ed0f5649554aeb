"""The protocol: every command in both encodings, and whatever else may come in."""

import types
import typing
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utterd.daemon import protocol
from utterd.daemon.protocol import ProtocolError, decode, encode, encoding_of, error_reply

CASES: dict[str, dict[str, Any]] = {
    "speak": {
        "text": "今天 good。",
        "id": "a",
        "client": "car",
        "voice": "kokoro/zf_001",
        "language": "zh-CN",
        "rate": 1.5,
        "pitch": 0.75,
        "volume": 2.0,
        "quality": "fast",
        "format": "ssml",
        "priority": "important",
        "queue": "replace",
        "interruptible": False,
        "ttl_ms": 1500,
        "durable": True,
        "marks": True,
        "more": True,
        "on_interrupt": "restart",
        "key": "k",
    },
    "load": {"client": "car", "voice": "kokoro"},
    "unload": {"client": "car", "voice": "kokoro"},
    "set": {"client": "car", "gain": 0.5, "voice": "kokoro/zm_yunxi"},
    "play_sound": {
        "client": "car",
        "sound": "ding.wav",
        "id": "d",
        "priority": "text",
        "volume": 0.5,
    },
    "append": {"client": "car", "id": "a", "text": "好"},
    "finish": {"client": "car", "id": "a"},
    "synthesize": {"text": "好", "encoding": "f32", "stream": True, "rate": 2.0, "id": "s"},
    "cancel": {"client": "car", "id": "a", "all": True},
    "stop": {"client": "car"},
    "pause": {"client": "car"},
    "resume": {"client": "car"},
    "skip": {"client": "car"},
    "say_again": {"client": "car", "id": "b"},
    "status": {"client": "car", "id": "a"},
    "voices": {"client": "car"},
    "forget": {"client": "car"},
    "info": {"client": "car"},
    "health": {"client": "car"},
    "metrics": {"client": "car"},
    "warmup": {"client": "car", "voice": "kokoro"},
    "ping": {"client": "car"},
    "describe": {"client": "car"},
}
COMMANDS: dict[str, Any] = {
    str(found.__struct_config__.tag): found for found in typing.get_args(protocol.AnyCommand)
}
ENCODERS = {"json": msgspec.json.encode, "msgpack": msgspec.msgpack.encode}


def test_every_command_has_a_case() -> None:
    assert isinstance(protocol.AnyCommand, types.UnionType)
    defined = {
        str(found.__struct_config__.tag)
        for found in vars(protocol).values()
        if isinstance(found, type)
        and issubclass(found, protocol.Command)
        and found not in (protocol.Command, protocol.Speech)
    }
    assert defined == set(COMMANDS) == set(CASES)


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("name", CASES)
def test_a_command_comes_through(name: str, encoding: str) -> None:
    command, found = decode(ENCODERS[encoding]({"command": name} | CASES[name]))
    assert (type(command), found) == (COMMANDS[name], encoding)
    assert CASES[name].items() <= msgspec.structs.asdict(command).items()
    assert decode(ENCODERS[encoding](command)) == (command, encoding)


def test_speak_s_case_sets_every_field() -> None:
    defaults = msgspec.structs.asdict(protocol.Speak(text=""))
    assert set(CASES["speak"]) == set(defaults)
    assert all(value != defaults[key] for key, value in CASES["speak"].items())


def test_plain_text_is_spoken() -> None:
    assert decode("你好, [world]".encode()) == (protocol.Speak(text="你好, [world]"), "text")
    assert decode(b"") == (protocol.Speak(text=""), "text")
    assert decode(b'  \n{"command": "ping"}') == (protocol.Ping(), "json")


def test_text_that_begins_like_a_msgpack_map_is_text() -> None:
    for text in ("ހެލޯ", "߀߁"):  # U+0780.., U+07C0..: their first bytes are 0xde and 0xdf
        assert text.encode()[0] in (0xDE, 0xDF)
        assert decode(text.encode()) == (protocol.Speak(text=text), "text")


def test_long_msgpack_maps_are_maps() -> None:
    body = {"command": "ping"} | {f"x{n}": 0 for n in range(20)}
    for head in (b"\xde\x00\x15", b"\xdf\x00\x00\x00\x15"):
        frame = head + msgspec.msgpack.encode(body)[3:]
        assert msgspec.msgpack.decode(frame) == body
        assert refused(frame).field.startswith("x")


def refused(frame: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        decode(frame)
    assert caught.value.code == "bad_request"
    assert caught.value.message
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"command": "speak"}, "text"),
        ({"command": "speak", "text": 5}, "text"),
        ({"command": "speak", "text": None}, "text"),
        ({"command": "speak", "text": "x", "colour": 1}, "colour"),
        ({"command": "speak", "text": "x", "rate": 0.4}, "rate"),
        ({"command": "speak", "text": "x", "rate": "fast"}, "rate"),
        ({"command": "speak", "text": "x", "volume": 2.1}, "volume"),
        ({"command": "speak", "text": "x", "pitch": 2.1}, "pitch"),
        ({"command": "speak", "text": "x", "ttl_ms": -1}, "ttl_ms"),
        ({"command": "speak", "text": "x", "ttl_ms": 1 << 62}, "ttl_ms"),
        ({"command": "speak", "text": "x", "ttl_ms": 0.5}, "ttl_ms"),
        ({"command": "speak", "text": "x", "priority": "urgent"}, "priority"),
        ({"command": "speak", "text": "x", "queue": ["add"]}, "queue"),
        ({"command": "speak", "text": "x", "more": "yes"}, "more"),
        ({"command": "speak", "text": "x", "id": "i" * 129}, "id"),
        ({"command": "append", "id": "", "text": "x"}, "id"),
        ({"command": "ping", "client": {}}, "client"),
        ({"command": "shout"}, "command"),
        ({"command": 7}, "command"),
        ({"text": "x"}, "command"),
        ({}, "command"),
    ],
)
def test_bad_input_names_the_field(body: dict[str, Any], field: str, encoding: str) -> None:
    assert refused(ENCODERS[encoding](body)).field == field


@pytest.mark.parametrize(
    "frame",
    [
        b"{",
        b'{"command": "ping"} x',
        b'{"command": "speak", "text": "x", "rate": NaN}',
        b'{"command": "speak", "text": "x", "rate": 1e999}',
        b'{"command": "speak", "text": "x", "ttl_ms": 99999999999999999999999999}',
        b'{"command": "speak", "text": "x", "ttl_ms": 1e300}',
        b'{"command": "speak", "text": "\xff"}',
        b'{"command": "speak", "text": "\x00"}',
        b"\xff\xfe\x00",
        b"\xed\xa0\x80",
        b"\x81\xa7command",
        b"\x82\xa7command\xa5speak\xa4text\xa1\xff",
        b"\x82\xa7command\xa5speak\xa4text\xa3\xed\xa0\x80",
        b"\x82\xa7command\xa5speak\xa4text\xc4\x01x",
        b"\xc1",
    ],
)
def test_what_is_no_command_is_refused(frame: bytes) -> None:
    refused(frame)


def test_no_number_that_is_none_gets_in() -> None:
    for value in (float("nan"), float("inf"), -float("inf")):
        frame = msgspec.msgpack.encode({"command": "speak", "text": "x", "rate": value})
        assert refused(frame).field == "rate"


@pytest.mark.parametrize("half", ["\\ud800", "\\udc00", "a\\ud83d", "\\ude00\\ud83d", "\\ud83dx"])
def test_half_a_character_never_gets_behind_the_protocol(half: str) -> None:
    """Nothing there has to expect what UTF-8 can't spell."""
    command, _ = decode(f'{{"command": "speak", "text": "{half}"}}'.encode())
    assert isinstance(command, protocol.Speak)
    assert "\N{REPLACEMENT CHARACTER}" in command.text
    command.text.encode()
    frame = f'{{"command": "speak", "text": "x", "id": "{half}"}}'.encode()
    assert refused(frame).field == "id"


def test_a_character_in_two_escapes_is_one() -> None:
    whole = b'{"command": "speak", "text": "\\ud83d\\ude00"}'
    assert decode(whole)[0] == protocol.Speak(text="\N{GRINNING FACE}")


def test_text_that_goes_on_may_end_in_half_a_character() -> None:
    command, _ = decode(b'{"command": "append", "id": "a", "text": "x\\ud83d"}')
    assert command == protocol.Append(id="a", text="x\ud83d")


def test_control_characters_are_the_front_end_s() -> None:
    command, _ = decode(b'{"command": "speak", "text": "a\\u0000\\u0007b"}')
    assert command == protocol.Speak(text="a\0\ab")


@pytest.mark.parametrize(
    "frame",
    [
        b'{"x":' * 100_000,
        b'{"command": "ping", "x": ' + b"[" * 100_000,
        b"\x81\xa1a" + b"\x91" * 100_000,
        b"\xde\x00\x01\xa1a" + b"\x91" * 100_000,
        b"\xdf\x00\x00\x00\x01\xa1a" + b"\x81\xa1a" * 100_000,
    ],
)
def test_deep_nesting_is_refused(frame: bytes) -> None:
    refused(frame)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(max_size=30).map(str.encode),
        st.binary(max_size=40).map(lambda tail: b"{" + tail),
        st.binary(max_size=40).map(lambda tail: b"\x82\xa7command\xa5speak\xa4text" + tail),
        st.binary(max_size=40).map(lambda tail: b"\xde\x00\x02" + tail),
    )
)
def test_any_bytes_give_a_command_or_a_protocol_error(frame: bytes) -> None:
    try:
        command, encoding = decode(frame)
    except ProtocolError as error:
        reply = error_reply(error)
        assert msgspec.json.decode(encode(reply, "json")) == reply
        return
    assert encoding == encoding_of(frame)
    assert decode(msgspec.json.encode(command)) == (command, "json")


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(), st.text(max_size=8)
)
JSON_VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.text(max_size=4), SCALARS, max_size=3),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(sorted(CASES)),
    fields=st.dictionaries(
        st.one_of(st.sampled_from(sorted(CASES["speak"])), st.text(max_size=8)),
        JSON_VALUES,
        max_size=4,
    ),
    encoding=st.sampled_from(sorted(ENCODERS)),
)
def test_any_fields_give_a_command_or_a_protocol_error(
    name: str, fields: dict[str, Any], encoding: str
) -> None:
    try:
        command, found = decode(ENCODERS[encoding](fields | {"command": name}))
    except ProtocolError as error:
        refusal = error.code
    else:
        assert (type(command), found) == (COMMANDS[name], encoding)
        return
    assert refusal == "bad_request"


def test_replies_are_answered_in_kind() -> None:
    reply = {"ok": True, "id": "好"}
    assert msgspec.msgpack.decode(encode(reply, "msgpack")) == reply
    assert msgspec.json.decode(encode(reply, "json")) == reply
    assert encode(reply, "text") == encode(reply, "json")


def test_an_error_tells_all_it_knows() -> None:
    assert error_reply(ProtocolError("queue_full", "too many", retry_after_ms=200)) == {
        "ok": False,
        "error": {"code": "queue_full", "message": "too many", "retry_after_ms": 200},
    }
    assert error_reply(ProtocolError("too_long", "m", "text"))["error"]["field"] == "text"


def test_the_schema_knows_every_command() -> None:
    assert set(CASES) <= {
        tag
        for found in protocol.schema()["$defs"].values()
        for tag in found["properties"].get("command", {}).get("enum", ())
    }


def test_say_again_gives_a_complete_text() -> None:
    again = protocol.Speak(text="好", id="a", more=True, priority="text").again("b")
    assert again == protocol.Speak(text="好", id="b", priority="text")
