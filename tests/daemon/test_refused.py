"""What a refused value could have been."""

import json
from pathlib import Path

import pytest

from utterd.daemon import protocol
from utterd.daemon.config import ConfigError, load


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ('[audio]\ndevise = "x"', "audio: there is no `devise`; is `device` meant?"),
        ('[audoi]\ndevice = "x"', "there is no `audoi`; is `audio` meant?"),
        ("[log]\nx = 1", "log: there is no `x`, only format, level"),
        ('[audio]\nsink = "speaker"', 'audio.sink: \'speaker\' is none of "device", "null", "wav"'),
        (
            '[metrics]\nlisten = "9464"',
            "metrics.listen: expected ADDRESS:PORT, such as 127.0.0.1:9464",
        ),
        (
            '[audio]\nrole = "a b"',
            "audio.role: expected a name of letters, digits, - and _, such as Notification",
        ),
        ("[audio]\ngain = 9", "audio.gain: Expected `float` <= 4.0"),
        ("audio = 5", "audio: Expected `object`, got `int`"),
    ],
)
def test_a_slip_in_a_file_is_told_with_what_is_possible(
    tmp_path: Path, file: str, told: str
) -> None:
    path = tmp_path / "utterd.toml"
    path.write_text(file)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert str(caught.value) == f"{path}: {told}"


@pytest.mark.parametrize(
    ("fields", "told", "field"),
    [
        (
            {"command": "speak", "text": "a", "queue": "push"},
            '\'push\' is none of "add", "flush", "replace"',
            "queue",
        ),
        ({"command": "speek", "text": "a"}, "there is no `speek`; is `speak` meant?", "command"),
        (
            {"command": "speak", "text": "a", "priorty": 1},
            "there is no `priorty`; is `priority` meant?",
            "priorty",
        ),
        ({"command": "ping", "text": "a"}, "there is no `text` in it", "text"),
        ({"command": "speak", "text": "a", "zzz": 1}, "there is no `zzz` in it", "zzz"),
    ],
)
def test_a_slip_in_a_command_is_told_with_what_is_possible(
    fields: dict[str, object], told: str, field: str
) -> None:
    for frame in (json.dumps(fields).encode(), protocol.encode(fields, "msgpack")):
        with pytest.raises(protocol.ProtocolError) as caught:
            protocol.decode(frame)
        assert (caught.value.message, caught.value.field) == (told, field)


def test_an_unknown_command_is_answered_with_all_there_are() -> None:
    with pytest.raises(protocol.ProtocolError) as caught:
        protocol.decode(b'{"command": "sing"}')
    assert all(name in caught.value.message for name in ("speak", "cancel", "describe"))
