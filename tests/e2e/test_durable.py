"""Durable utterances: nothing accepted is lost or said twice, whatever is killed."""

import time

import pytest

from tests.daemon_process import DaemonProcess, listening

TEXT = "This is the first sentence. Here is the second one. And this is the third of them."


@pytest.fixture
def daemon(tmp_path, voices_dir):
    data = tmp_path / "data"
    data.mkdir()
    (data / "voices").symlink_to(voices_dir / "voices")
    process = DaemonProcess(
        tmp_path / "run",
        data,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null"},
    )
    yield process
    if process.process.poll() is None:
        process.stop()


def restart_listening(daemon: DaemonProcess, ids: list[str]) -> dict[str, list[dict]]:
    """Start the daemon again and follow utterances to their ends."""
    daemon.start(wait=False)
    daemon.wait_until((daemon.run_dir / "events.sock").exists, 10.0, "the sockets")
    with listening(daemon) as listener:
        for id_ in ids:
            listener.wait_for(id_)
        return {id_: listener.of(id_) for id_ in ids}


def test_after_a_kill_it_goes_on_from_its_clause_and_the_others_follow(daemon):
    with listening(daemon) as listener, daemon.client("reader") as client:
        client.call("speak", text=TEXT, id="one", durable=True)
        client.call("speak", text="The next line.", id="two", durable=True)
        client.call("speak", text="Lost by its own wish.", id="three")
        second = TEXT.index("Here")
        daemon.wait_until(
            lambda: any(
                e["event"] == "progress" and e["start"] >= second for e in listener.of("one")
            ),
            60.0,
            "the second sentence",
        )
    daemon.process.kill()
    daemon.process.wait()
    events = restart_listening(daemon, ["one", "two"])
    progress = [e["start"] for e in events["one"] if e["event"] == "progress"]
    assert progress[0] == second
    assert [e["event"] for e in events["two"]][-1] == "ended"
    assert [e["event"] for e in events["one"]][-1] == "ended"
    ended = {id_: found[-1]["sequence"] for id_, found in events.items()}
    assert ended["one"] < ended["two"]
    daemon.process.kill()
    daemon.process.wait()
    daemon.start()
    with daemon.client("reader") as client:
        assert client.call("status")["ended"] == {}


def test_an_orderly_stop_keeps_it_too(daemon):
    with listening(daemon) as listener, daemon.client("reader") as client:
        client.call("speak", text=TEXT, id="kept", durable=True)
        listener.wait_for("kept", "started")
    daemon.stop()
    events = restart_listening(daemon, ["kept"])
    assert events["kept"][-1]["event"] == "ended"


def test_what_is_too_late_is_dropped_and_says_so(daemon):
    with daemon.client("reader") as client:
        client.call("pause")
        client.call("speak", text="Too late.", id="late", durable=True, ttl_ms=500)
        client.call("speak", text="In time.", id="soon", durable=True, ttl_ms=600_000)
    daemon.process.kill()
    daemon.process.wait()
    time.sleep(0.6)
    daemon.start()
    with daemon.client("reader") as client:
        assert client.call("status", id="late")["terminal"]["event"] == "dropped"
        assert client.call("status", id="late")["terminal"]["reason"] == "expired"
        daemon.wait_until(
            lambda: client.call("status")["ended"].get("ended") == 1, 60.0, "the other to end"
        )


def test_text_in_pieces_is_spoken_as_far_as_it_came(daemon):
    with daemon.client("reader") as client:
        client.call("pause")
        client.call("speak", text="A text that", id="open", durable=True, more=True)
        client.call("append", id="open", text=" never ends, ")
    daemon.process.kill()
    daemon.process.wait()
    events = restart_listening(daemon, ["open"])
    assert events["open"][-1]["event"] == "ended"


def test_two_daemons_with_one_data_folder_say_nothing_twice(daemon, tmp_path):
    with daemon.client("reader") as client:
        client.call("pause")
        client.call("speak", text=TEXT, id="one", durable=True)
    other = DaemonProcess(
        tmp_path / "other",
        daemon.config.data_dir,
        *("--voice", "joe-us"),
        environment={"UTTERD_AUDIO_SINK": "null"},
    )
    with other.client("reader") as client:
        status, health = client.call("status"), client.call("health")
    other.stop()
    assert not status["speaking"] + status["waiting"]
    (trouble,) = health["degraded"]
    assert trouble["what"] == "journal"
    assert "in use by another utterd" in trouble["message"]
    with listening(daemon) as listener, daemon.client("reader") as client:
        client.call("resume")
        assert listener.wait_for("one")["event"] == "ended"
