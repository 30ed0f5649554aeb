"""`utterd say` and `utterd synth` against a real daemon."""

import json
import signal
import wave
from pathlib import Path

import numpy as np
import pytest

from tests.daemon_process import DaemonProcess, listening
from tests.e2e.command import LONG, PATIENCE_S, at, complaint, done, finish, held, run, spawn
from utterd.daemon.utterance import STAGES


def test_say_speaks_its_arguments(quiet_daemon):
    with listening(quiet_daemon) as listener:
        result = run("say", *at(quiet_daemon), "--volume", "0.5", "Hello", "there.")
        assert done(result) == ""
        assert result.stderr == ""
        (id_,) = {e["id"] for e in listener.events if e["event"] == "accepted"}
        assert listener.wait_for(id_)["client"].startswith("say-")


def test_say_speaks_each_line_of_standard_input_in_order(quiet_daemon):
    lines = "\ufeffHi.\n\n   \r\nYou there.\r\nGo on".encode()
    events = [
        json.loads(line)
        for line in done(run("say", *at(quiet_daemon), "--json", stdin=lines)).splitlines()
    ]
    told = [(e["event"], e["id"]) for e in events if e["event"] in ("accepted", "ended")]
    assert [event for event, _ in told] == ["accepted", "ended"] * 3
    assert [id_ for _, id_ in told[::2]] == [id_ for _, id_ in told[1::2]]
    assert len({id_ for _, id_ in told}) == 3


def test_two_that_say_something_do_not_disturb_each_other(quiet_daemon):
    with held(quiet_daemon) as client:
        first = spawn("say", *at(quiet_daemon), "First.")
        quiet_daemon.wait_until(
            lambda: bool(client.call("status")["waiting"]), PATIENCE_S, "the first to wait"
        )
        second = spawn("say", *at(quiet_daemon), "Second.")
        quiet_daemon.wait_until(
            lambda: len(client.call("status")["waiting"]) == 2, PATIENCE_S, "both to wait"
        )
        client.call("resume")
        for process in (first, second):
            result = finish(process)
            assert (done(result), result.stderr) == ("", "")


def test_say_nothing_is_done_at_once(quiet_daemon):
    assert done(run("say", *at(quiet_daemon), stdin=b"\n \n")) == ""


def test_stages_are_a_table_that_only_grows(quiet_daemon):
    lines = done(run("say", *at(quiet_daemon), "--stages", "Hello.")).splitlines()
    assert lines[0].split() == ["stage", "at", "ms", "took", "ms"]
    rows = [line.split() for line in lines[1:]]
    assert [row[0] for row in rows] == list(STAGES)
    times = [float(row[1]) for row in rows]
    assert times[0] == 0.0
    assert times == sorted(times)


def test_a_device_that_stays_away_is_told_once(tmp_path, voices_dir):
    daemon = DaemonProcess(
        tmp_path / "run", voices_dir, *("--voice", "joe-us", "--device", "no such device")
    )
    try:
        with listening(daemon) as listener:
            process = spawn("say", *at(daemon), "Nobody hears this.")
            accepted = lambda: any(e["event"] == "accepted" for e in listener.events)  # noqa: E731
            daemon.wait_until(accepted, PATIENCE_S, "the utterance")
            before = sum(e["event"] == "device_lost" for e in listener.events)
            tries = lambda: sum(e["event"] == "device_lost" for e in listener.events)  # noqa: E731
            daemon.wait_until(lambda: tries() >= before + 3, PATIENCE_S, "three more tries")
            process.send_signal(signal.SIGINT)
            result = finish(process)
    finally:
        daemon.stop()
    (line,) = result.stderr.splitlines()
    assert "no such device" in line
    assert "Ctrl-C" in line
    assert result.returncode == 130


def test_no_wait_returns_when_it_is_accepted(quiet_daemon):
    with held(quiet_daemon) as client:
        assert done(run("say", *at(quiet_daemon), "--no-wait", "--priority", "text", "One.")) == ""
        (waiting,) = client.call("status")["waiting"]
    assert (waiting["priority"], waiting["characters"]) == ("text", 4)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_cancels_what_is_said(quiet_daemon, number, code):
    with listening(quiet_daemon) as listener:
        process = spawn("say", *at(quiet_daemon), LONG)

        def started() -> bool:
            return any(e["event"] == "started" for e in listener.events)

        quiet_daemon.wait_until(started, PATIENCE_S, "the text to sound")
        process.send_signal(number)
        result = finish(process)
        (id_,) = {e["id"] for e in listener.events if e["event"] == "started"}
        assert listener.wait_for(id_)["event"] == "cancelled"
    assert (result.returncode, result.stdout, result.stderr) == (code, "", "")


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("--rate", "99", "x"), 2, "rate"),
        ((" ",), 2, "empty"),
        (("a" * 20_001,), 2, "20001 characters"),
        (("--voice", "nobody", "x"), 1, "joe-us"),
        (("--quality", "best", "x"), 2, "fast"),
        (("--voice", "joe-us/nobody", "x"), 1, "nobody"),
        (("--ssml", "<speak>"), 1, "line 1"),
    ],
)
def test_what_cannot_be_said_is_told(quiet_daemon, arguments, code, named):
    assert named in complaint(run("say", *at(quiet_daemon), *arguments), code)


def test_text_that_is_not_utf8_is_told(quiet_daemon, tmp_path):
    gbk = "你好\n".encode("gbk")
    assert "iconv" in complaint(run("say", *at(quiet_daemon), stdin=gbk), 2)
    output = tmp_path / "x.wav"
    line = complaint(run("synth", *at(quiet_daemon), "-o", str(output), stdin=gbk), 2)
    assert "UTF-8" in line
    assert not output.exists()


def samples(file: Path) -> tuple[np.ndarray, int]:
    with wave.open(str(file)) as wav:
        assert (wav.getnchannels(), wav.getsampwidth()) == (1, 2)
        data = np.frombuffer(wav.readframes(wav.getnframes()), np.int16)
        assert len(data) == wav.getnframes()
        return data, wav.getframerate()


def test_synth_writes_a_wav_file(quiet_daemon, tmp_path):
    output = tmp_path / "new.wav"
    text = done(run("synth", *at(quiet_daemon), "--json", "-o", str(output), "Hello there."))
    summary = json.loads(text)
    data, rate = samples(output)
    assert (summary["file"], summary["sample_rate"]) == (str(output), rate)
    assert summary["seconds"] == pytest.approx(len(data) / rate, abs=1e-3)
    assert np.abs(data.astype(int)).max() > 1000
    assert [path.name for path in tmp_path.iterdir()] == ["new.wav"]


def test_synth_takes_all_of_standard_input_and_replaces_what_a_link_names(quiet_daemon, tmp_path):
    target, link = tmp_path / "old.wav", tmp_path / "link.wav"
    target.write_bytes(b"old")
    link.symlink_to(target)
    result = run("synth", *at(quiet_daemon), "-o", str(link), stdin=b"One line.\nAnd another.\n")
    assert done(result) == ""
    assert result.stderr.startswith(f"{link}: ")
    both, _ = samples(target)
    assert link.is_symlink()
    run("synth", *at(quiet_daemon), "-o", str(link), stdin=b"One line.")
    assert len(samples(target)[0]) < len(both)


def test_synth_into_a_pipe(quiet_daemon):
    process = spawn("synth", *at(quiet_daemon), "-o", "/dev/stdout", "Hello.")
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert out[:4] == b"RIFF"
    assert int.from_bytes(out[4:8], "little") + 8 == len(out)


SMALL_FILES = ("prlimit", "--fsize=4096")


@pytest.mark.parametrize(
    ("output", "arguments", "code", "named"),
    [
        ("none/x.wav", ("Hello.",), 1, "no such folder"),
        (".", ("Hello.",), 1, "a folder"),
        ("old.wav", ("--voice", "nobody", "Hello."), 1, "joe-us"),
        ("old.wav", ("--pitch", "9", "Hello."), 2, "pitch"),
        ("old.wav", (" ",), 2, "empty"),
        ("old.wav", ("Too much.",), 1, "File too large"),
    ],
)
def test_synth_that_fails_changes_nothing(
    quiet_daemon, tmp_path, *, output, arguments, code, named
):
    old = tmp_path / "old.wav"
    old.write_bytes(b"old")
    command = ("synth", *at(quiet_daemon), "-o", str(tmp_path / output), *arguments)
    assert named in complaint(run(*command, under=SMALL_FILES), code)
    assert [path.name for path in tmp_path.iterdir()] == ["old.wav"]
    assert old.read_bytes() == b"old"
