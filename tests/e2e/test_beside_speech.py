"""Samples for clients are made while a long text is spoken, and the text doesn't suffer from it."""

import numpy as np
import pytest

from tests.daemon_process import DaemonProcess, listening

LONG = "".join(f"这是第{number}句话，后面还有很多句，请慢慢听。" for number in range(1, 60))
TEXTS = ("前方路口右转。", "您有一条新消息，要现在听吗？", "Turn left。然后直行三公里。")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beside")
    process = DaemonProcess(
        folder / "run",
        folder / "data",
        *("--voice", "small"),
        environment={"UTTERD_AUDIO_SINK": "null"},
    )
    yield process
    process.stop()


def samples(client, text):
    _, data = client.call_with_samples("synthesize", text=text, encoding="f32", timeout_s=60.0)
    return np.frombuffer(data, np.float32)


def test_a_long_text_and_samples_at_once(daemon):
    with listening(daemon) as listener, daemon.client("asks") as client:
        alone = [samples(client, text) for text in TEXTS]
        client.call("forget")  # or they would only be looked up
        client.call("speak", text=LONG, id="long")
        listener.wait_for("long", "started")
        for text, before in zip(TEXTS, alone, strict=True):
            np.testing.assert_array_equal(samples(client, text), before)
        client.call("speak", text="请注意安全。", id="first", priority="important")
        listener.wait_for("first")
        np.testing.assert_array_equal(samples(client, TEXTS[0]), alone[0])
        assert not {e["event"] for e in listener.of("long")} & {"ended", "failed"}
        client.call("cancel", id="long")
        assert listener.wait_for("long")["event"] == "cancelled"
        assert listener.of("first")[-1]["event"] == "ended"


def test_samples_do_not_wait_for_a_line_of_short_texts(daemon):
    with listening(daemon) as listener, daemon.client("queues") as client:
        for number in range(10):
            client.call("speak", text=f"第{number}条消息到了。", id=f"m{number}")
        assert len(samples(client, TEXTS[1])) > 10_000
        assert not listener.of("m9") or listener.of("m9")[-1]["event"] == "accepted"
        assert [listener.wait_for(f"m{n}")["event"] for n in range(10)] == ["ended"] * 10
