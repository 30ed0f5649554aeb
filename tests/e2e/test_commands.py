"""Commands about voices and the whole: load, unload, set, say_again, skip."""

import pytest

from tests.daemon_process import listening
from utterd.daemon.client import DaemonError


def workers(daemon) -> list[str]:
    with daemon.client() as client:
        return [voice["name"] for voice in client.call("health")["voices"]]


def test_a_voice_is_unloaded_and_loaded_again_when_it_is_wanted(quiet_daemon):
    with listening(quiet_daemon) as listener, quiet_daemon.client("load") as client:
        client.call("load", timeout_s=60.0, voice="joe-us")
        pid = quiet_daemon.child("utterd.engine.worker").pid
        client.call("unload", voice="joe-us")
        assert workers(quiet_daemon) == []
        quiet_daemon.wait_until(
            lambda: pid not in [child.pid for child in quiet_daemon.children()], 10.0, "its end"
        )
        client.call("speak", text="Here again.", id="again")
        assert listener.wait_for("again")["event"] == "ended"
    assert workers(quiet_daemon) == ["joe-us"]


def test_a_voice_that_speaks_is_not_unloaded(quiet_daemon):
    with listening(quiet_daemon) as listener, quiet_daemon.client("busy") as client:
        client.call("speak", text="A sentence that takes its time to be said.", id="busy")
        with pytest.raises(DaemonError, match="has something to say"):
            client.call("unload", voice="joe-us")
        assert listener.wait_for("busy")["event"] == "ended"


def test_what_is_set_is_told(quiet_daemon):
    with quiet_daemon.client() as client:
        assert client.call("set", gain=0.5)["gain"] == 0.5
        assert client.call("set", voice="joe-us")["voice"] == "joe-us"
        assert client.call("set", gain=1.0)["gain"] == 1.0
        with pytest.raises(DaemonError, match="no voice 'nobody'"):
            client.call("set", voice="nobody")


def test_the_last_one_is_said_again(quiet_daemon):
    with listening(quiet_daemon) as listener, quiet_daemon.client("again") as client:
        with pytest.raises(DaemonError, match="not said anything"):
            client.call("say_again")
        client.call("speak", text="Say me twice.", id="first", rate=1.5)
        first = listener.wait_for("first")
        client.call("say_again", id="second")
        second = listener.wait_for("second")
    assert second["played_ms"] == first["played_ms"]


def test_skip_goes_on_with_the_next(quiet_daemon):
    with listening(quiet_daemon) as listener, quiet_daemon.client("skip") as client:
        client.call("speak", text="This one is far too long to be heard to its end.", id="long")
        client.call("speak", text="The next.", id="next")
        listener.wait_for("long", "started")
        client.call("skip")
        assert listener.wait_for("long")["reason"] == "skipped"
        assert listener.wait_for("next")["event"] == "ended"
