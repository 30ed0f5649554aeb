"""`utterd say` and `utterd synth`."""

import argparse
import errno
import json
import os
import signal
import sys
import uuid
import wave
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config
from utterd.daemon.ephemeral import a_daemon
from utterd.daemon.events import TERMINAL
from utterd.daemon.utterance import STAGES

BLANK = " \t\r\n\v\f\ufeff"
"""Around a text; a file may begin with a byte order mark."""


def say(options: argparse.Namespace, config: Config) -> int:
    """Speak the arguments, or each line of standard input as it comes."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: cancel, and end the daemon of ours
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with a_daemon(options, config), Client(config, name=f"say-{os.getpid()}") as client:
        client.subscribe()
        good = True
        for text in _texts(options):
            good &= _say_one(client, text, options, config)
        return 0 if good else 1


def _texts(options: argparse.Namespace) -> Iterator[str]:
    if options.text:
        yield " ".join(options.text)
        return
    for line in sys.stdin.buffer:
        if text := line.decode().strip(BLANK):
            yield text


def _say_one(client: Client, text: str, options: argparse.Namespace, config: Config) -> bool:
    id_ = uuid.uuid4().hex[:12]
    fields = _fields(options)
    for name in ("priority", "queue"):
        if (value := getattr(options, name)) is not None:
            fields[name] = value
    try:
        client.call("speak", text=text, id=id_, **fields)
        return options.no_wait or _follow(client, id_, options)
    except (KeyboardInterrupt, SystemExit):
        # By a connection of its own: on this one an answer may still be due.
        with suppress(DaemonError), Client(config, client.name, starting_s=0.0) as canceller:
            canceller.call("cancel", id=id_)
        raise


def _follow(client: Client, id_: str, options: argparse.Namespace) -> bool:
    """Wait for the terminal event of an utterance."""
    lost = ""
    while True:
        for event in client.events(timeout_s=2.0):
            if options.json and event["id"] in (id_, ""):
                print(json.dumps(event, ensure_ascii=False), flush=True)
            elif event["event"] == "device_lost" and event["message"] != lost:
                lost = event["message"]  # told anew with every try of the player
                print(f"utterd: {lost}; waiting for it, Ctrl-C gives up", file=sys.stderr)
            elif event["event"] == "device_back":
                lost = ""
            elif event["event"] == "skipped" and event["id"] == id_:
                print(f"utterd: not spoken: {event['text']!r} ({event['reason']})", file=sys.stderr)
            if event["id"] == id_ and event["event"] in TERMINAL:
                return _report(event, options)
        # Events can be lost: the state can always be asked for.
        reply = client.call("status", id=id_)
        if "terminal" in reply:
            return _report(reply["terminal"], options)


def _report(event: dict[str, Any], options: argparse.Namespace) -> bool:
    if event["event"] == "ended":
        if options.stages and not options.json:
            print_stages(event["stages"])
        return True
    detail = event.get("message") or event.get("reason", "")
    print(f"utterd: {event['event']}: {detail}", file=sys.stderr)
    return False


def print_stages(stages: dict[str, int]) -> None:
    """A table of when each stage was passed, in ms after the text came in."""
    begin = before = stages["received"]
    print(f"{'stage':<20}{'at ms':>10}{'took ms':>10}")
    for name in STAGES:
        if name in stages:
            now = stages[name]
            print(f"{name:<20}{(now - begin) / 1e6:>10.2f}{(now - before) / 1e6:>10.2f}")
            before = now


def synth(options: argparse.Namespace, config: Config) -> int:
    """Write speech to a WAV file."""
    _check_output(options.output)
    text = " ".join(options.text) if options.text else sys.stdin.buffer.read().decode().strip(BLANK)
    with Client(config, name=f"synth-{os.getpid()}") as client:
        reply, samples = client.call_with_samples(
            "synthesize", timeout_s=600.0, text=text, **_fields(options)
        )
    _write(options.output, samples, reply["sample_rate"])
    seconds = len(samples) / 2 / reply["sample_rate"]
    summary = {"file": str(options.output), "seconds": round(seconds, 3)} | {
        key: reply[key] for key in ("sample_rate", "first_pcm_ms", "synthesis_ms", "skipped")
    }
    if options.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        made = f"{seconds:.2f} s, made in {reply['synthesis_ms']:.0f} ms"
        print(f"{options.output}: {made}", file=sys.stderr)
    return 0


def _check_output(output: Path) -> None:
    """Before anything is made: a place where a file can be.

    Raises:
        OSError: it is none.
    """
    if output.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder; name a file", str(output))
    if not output.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder; make it first", str(output.parent))


def _write(output: Path, samples: bytes, sample_rate: int) -> None:
    """Replace a file whole or not at all; what is no file (`/dev/stdout`) is written to."""
    if output.exists() and not output.is_file():
        with output.open("wb") as file:
            _write_wave(file, samples, sample_rate)
        return
    output = output.resolve()  # a link stays one
    partial = output.with_name(f"{output.name}.part")
    try:
        with partial.open("wb") as file:
            _write_wave(file, samples, sample_rate)
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)


def _write_wave(file: BinaryIO, samples: bytes, sample_rate: int) -> None:
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(sample_rate)
        wav.setnframes(len(samples) // 2)
        wav.writeframesraw(samples)


def _fields(options: argparse.Namespace) -> dict[str, Any]:
    """Options that are fields of `speak` and `synthesize`."""
    names = ("voice", "quality", "rate", "pitch", "volume")
    fields = {name: value for name in names if (value := getattr(options, name)) is not None}
    return fields | {"format": "ssml"} if options.ssml else fields
