"""Sound icons in one queue with speech."""

import numpy as np
import pytest
import soundfile

from tests.daemon_process import DaemonProcess, listening
from utterd.daemon.client import DaemonError


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, voices_dir):
    folder = tmp_path_factory.mktemp("sounds")
    icons = folder / "icons"
    icons.mkdir()
    soundfile.write(icons / "ding.flac", np.full(44_100 // 2, 0.25, "f4"), 44_100)
    (icons / "broken.wav").write_bytes(b"no sound")
    (folder / "secret.wav").write_bytes(b"not for clients")
    process = DaemonProcess(
        folder / "run",
        voices_dir,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null", "UTTERD_PATHS_SOUNDS": str(icons)},
    )
    yield process
    process.stop()


def test_a_sound_is_played_in_turn(daemon):
    with listening(daemon) as listener, daemon.client("icons") as client:
        client.call("speak", text="First.", id="before")
        client.call("play_sound", sound="ding.flac", id="ding")
        client.call("speak", text="Second.", id="after")
        ended = [listener.wait_for(id_) for id_ in ("before", "ding", "after")]
    assert [event["event"] for event in ended] == ["ended"] * 3
    assert ended[1]["played_ms"] == pytest.approx(500, abs=1)
    assert [e["sequence"] for e in ended] == sorted(e["sequence"] for e in ended)


def test_a_broken_sound_fails_alone(daemon):
    with listening(daemon) as listener, daemon.client("icons") as client:
        client.call("play_sound", sound="broken.wav", id="broken")
        client.call("speak", text="Still here.", id="next")
        assert listener.wait_for("broken")["code"] == "bad_request"
        assert listener.wait_for("next")["event"] == "ended"


@pytest.mark.parametrize(
    "name", ["no such.wav", "../secret.wav", "/etc/passwd", "", "a\0b", "很" * 1000]
)
def test_no_file_outside_of_the_folder_can_be_named(daemon, name):
    with daemon.client("icons") as client:
        with pytest.raises(DaemonError, match=r"there is no sound|empty"):
            client.call("play_sound", sound=name)
        with pytest.raises(DaemonError, match=r"there is no sound|empty"):
            client.call("speak", text=name, format="sound")
