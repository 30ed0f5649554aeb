"""What was said sounds at once when it is said again, is counted, and can be forgotten."""

import json

import pytest

from tests.daemon_process import DaemonProcess, listening
from tests.e2e.command import PATIENCE_S, at, done, run
from tests.engine.cache.contents import contents

TEXT = "The same again."


@pytest.fixture
def daemon(tmp_path, voices_dir):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "voices").symlink_to(voices_dir / "voices")
    environment = {"UTTERD_AUDIO_SINK": "null", "UTTERD_CACHE_DISK_MB": "8"}
    process = DaemonProcess(
        tmp_path / "run", tmp_path / "data", "--voice", "joe-us", environment=environment
    )
    yield process
    process.stop()


def cache(client) -> dict:
    (voice,) = client.call("metrics")["voices"]
    return voice["cache"] or {}


def test_it_is_said_counted_kept_and_forgotten(daemon, tmp_path):
    folder = tmp_path / "data" / "cache"
    with listening(daemon) as listener, daemon.client("again") as client:
        ends = []
        for id_ in ("1", "2", "3"):
            client.call("speak", text=TEXT, id=id_, marks=True)
            ends.append(listener.wait_for(id_))
        assert [end["event"] for end in ends] == ["ended"] * 3
        assert len({end["played_ms"] for end in ends}) == 1
        words = [
            [
                (e["start"], e["end"])
                for e in listener.events
                if e["event"] == "word" and e["id"] == id_
            ]
            for id_ in ("1", "2", "3")
        ]
        assert len(words[0]) == 3
        assert words[0] == words[1] == words[2]
        daemon.wait_until(lambda: cache(client).get("hits") == 2, PATIENCE_S, "two hits")
        daemon.wait_until(lambda: contents(folder) != {}, PATIENCE_S, "an entry on disk")
        told = json.loads(done(run("voices", "forget", "--json", *at(daemon))))
        assert told == {"deleted": 1}
        daemon.wait_until(lambda: cache(client)["entries"] == 0, PATIENCE_S, "an empty cache")
        assert contents(folder) == {}
        assert client.call("health")["problems"] == []
