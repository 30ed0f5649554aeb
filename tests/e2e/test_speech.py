"""Text on the socket against samples at the speaker's monitor: what is heard is what was made."""

import numpy as np
import pytest
import soxr
from numpy.typing import NDArray

from tests.daemon_process import DaemonProcess, listening
from tests.sound_server import Capture, SoundServer

SENTENCES = (
    "Turn left at the next intersection.",
    "The charging station is two kilometres ahead.",
    "You have one new message.",
)
AUDIBLE = 10 ** (-50 / 20)
PERIOD_MS = 10.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, voices_dir, sound_server):
    folder = tmp_path_factory.mktemp("speech")
    process = DaemonProcess(
        folder / "run", voices_dir, "--voice", "joe-us", environment=sound_server.environment
    )
    yield process
    process.stop()


def made(daemon: DaemonProcess, text: str, rate: int, **fields: object) -> NDArray[np.float32]:
    """The samples that the daemon makes of a text, at the speaker's rate."""
    with daemon.client() as client:
        reply, data = client.call_with_samples(
            "synthesize", timeout_s=60.0, text=text, encoding="f32", **fields
        )
    return soxr.resample(np.frombuffer(data, np.float32), reply["sample_rate"], rate)


def place(capture: Capture, wanted: NDArray[np.float32], begin: int) -> tuple[int, float]:
    """Where samples lie in a capture from `begin` on, and how alike the two are (correlation)."""
    heard = capture.samples[begin:]
    size = 1 << int(np.ceil(np.log2(len(heard) + len(wanted))))
    spectrum = np.fft.rfft(heard, size) * np.conj(np.fft.rfft(wanted, size))
    at = int(np.argmax(np.fft.irfft(spectrum, size)[: len(heard) - len(wanted) + 1]))
    piece = heard[at : at + len(wanted)]
    alike = float(np.dot(piece, wanted) / (np.linalg.norm(piece) * np.linalg.norm(wanted)))
    return begin + at, alike


def test_what_is_heard_is_what_was_made_in_order_and_without_gaps(daemon, sound_server):
    with sound_server.capture() as recorder, listening(daemon) as listener:
        with daemon.client("order") as client:
            for number, text in enumerate(SENTENCES):
                client.call("speak", text=text, id=f"s{number}")
        ended = [listener.wait_for(f"s{number}") for number in range(len(SENTENCES))]
    assert [event["event"] for event in ended] == ["ended"] * len(SENTENCES)
    assert not [e for e in listener.events if e["event"] == "underrun"]
    capture = recorder.result
    begin = 0
    for text, event in zip(SENTENCES, ended, strict=True):
        wanted = made(daemon, text, capture.rate)
        at, alike = place(capture, wanted, begin)
        assert alike > 0.99, f"{text!r} was heard only {alike:.3f} alike"
        assert abs(event["played_ms"] - len(wanted) / capture.rate * 1000) < 1.0
        if begin:  # the next one follows the last one's sample at once
            assert abs(at - begin) <= 48
        begin = at + len(wanted)


def test_chinese_is_heard_as_it_was_made(daemon, sound_server):
    text = "导航到最近的加油站"
    with sound_server.capture() as recorder, listening(daemon) as listener:
        with daemon.client("chinese") as client:
            client.call("speak", text=text, id="zh", voice="kokoro", marks=True)
            event = listener.wait_for("zh", timeout_s=100.0)
        words = [e for e in listener.of("zh") if e["event"] == "word"]
    assert event["event"] == "ended"
    assert "".join(text[word["start"] : word["end"]] for word in words) == text
    wanted = made(daemon, text, recorder.result.rate, voice="kokoro")
    _, alike = place(recorder.result, wanted, 0)
    assert alike > 0.99


def test_the_stamp_of_first_sound_agrees_with_the_speaker(daemon, sound_server: SoundServer):
    differences = []
    with (
        sound_server.capture() as recorder,
        listening(daemon) as listener,
        daemon.client("stamp") as client,
    ):
        for number in range(5):
            client.call("speak", text=SENTENCES[number % 3], id=f"t{number}")
            listener.wait_for(f"t{number}")
    capture = recorder.result
    for number in range(5):
        stages = listener.wait_for(f"t{number}")["stages"]
        begin = max(0, capture.frame_at(stages["received"]))
        first = begin + int(np.argmax(np.abs(capture.samples[begin:]) > AUDIBLE))
        differences.append((stages["first_sound"] - capture.time_ns(first)) / 1e6)
    assert max(map(abs, differences)) <= PERIOD_MS, differences


def test_a_cancelled_utterance_is_silent_when_the_reply_comes(daemon, sound_server):
    with (
        sound_server.capture() as recorder,
        listening(daemon) as listener,
        daemon.client("cancel") as client,
    ):
        client.call("speak", text=" ".join(SENTENCES * 2), id="long")
        listener.wait_for("long", "started")
        reply = client.call("cancel", id="long")
        event = listener.wait_for("long")
    assert reply["cancelled"] == 1
    assert 0 < reply["silent_after_ms"] < 500
    assert event["event"] == "cancelled"
    assert event["played_ms"] > 0
    capture = recorder.result
    after = capture.frame_at(event["monotonic_ns"]) + capture.rate // 50
    assert np.max(np.abs(capture.samples[after:]), initial=0.0) < AUDIBLE


def test_words_are_told_when_they_sound(daemon):
    text = "Turn left at the next intersection."
    with listening(daemon) as listener, daemon.client("words") as client:
        client.call("speak", text=text, id="words", marks=True)
        ended = listener.wait_for("words")
        words = [e for e in listener.of("words") if e["event"] == "word"]
    assert [text[word["start"] : word["end"]] for word in words] == [
        "Turn",
        "left",
        "at",
        "the",
        "next",
        "intersection",
    ]
    times = [word["dac_ns"] for word in words]
    assert times == sorted(times)
    assert ended["stages"]["first_sound"] <= times[1] < ended["dac_ns"]
    assert all(abs(word["monotonic_ns"] - word["dac_ns"]) < 50e6 for word in words)


def test_text_in_pieces_is_heard_as_one(daemon):
    with listening(daemon) as listener, daemon.client("pieces") as client:
        client.call("speak", text="Turn le", id="p", more=True)
        for token in ("ft, ", "then dri", "ve on. ", "You have", " arrived."):
            client.call("append", id="p", text=token)
        client.call("finish", id="p")
        event = listener.wait_for("p")
    assert event["event"] == "ended"
    assert event["played_ms"] > 1500


def test_an_important_message_cuts_in_and_the_other_goes_on_from_its_clause(daemon):
    text = "This is the first sentence of it. Here comes the second one. And this is the third."
    with listening(daemon) as listener, daemon.client("cut") as client:
        client.call("speak", text=text, id="talk", marks=True)
        listener.wait_for("talk", "word")
        client.call("speak", text="Turn left now.", id="prompt", priority="important")
        assert listener.wait_for("prompt")["event"] == "ended"
        assert listener.wait_for("talk")["event"] == "ended"
    names = [
        e["event"]
        for e in listener.of("talk")
        if e["event"] in ("started", "paused", "resumed", "ended")
    ]
    assert names == ["started", "paused", "resumed", "ended"]
    assert (
        listener.wait_for("talk", "paused")["sequence"]
        < listener.wait_for("prompt", "started")["sequence"]
    )
    resumed = listener.wait_for("talk", "resumed")
    assert resumed["start"] in (0, text.index("Here"), text.index("And"))


def test_pause_holds_and_resume_goes_on(daemon):
    with listening(daemon) as listener, daemon.client("pause") as client:
        client.call("speak", text=" ".join(SENTENCES), id="held")
        listener.wait_for("held", "started")
        assert client.call("pause")["ok"]
        assert client.call("status")["paused"]
        assert not client.call("status")["speaking"]
        client.call("resume")
        assert listener.wait_for("held")["event"] == "ended"
