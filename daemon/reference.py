"""`utterd reference`: record what is played, as a program that cancels echo gets it."""

import argparse
import sys
import time
import wave
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config

_PATIENCE_S = 1.0
"""Without a message for so long it is seen whether the daemon still lives."""


class _Recording:
    """A 16-bit WAV file that grows by messages."""

    def __init__(self, wav: wave.Wave_write) -> None:
        self.frames = 0
        self.missing = 0
        self.rate = 0
        self._wav = wav
        self._next = (0, 0)

    def add(self, header: dict[str, Any], samples: bytes) -> None:
        """Append a message.

        Raises:
            DaemonError: the device was opened at another rate.
        """
        if header["closed"]:
            print(f"utterd: {header['device']}: {header['closed']}", file=sys.stderr)
            return
        if not self.rate:
            self.rate = header["rate"]
            self._wav.setparams((1, 2, self.rate, 0, "NONE", ""))
        if header["rate"] != self.rate:
            raise DaemonError(
                "unavailable",
                f"{header['device']} plays at {header['rate']} Hz now, which does not go into one "
                f"file with {self.rate} Hz; record the rest into another",
            )
        opened_ns, index = header["opened_ns"], header["index"]
        if opened_ns == self._next[0]:
            self.missing += index - self._next[1]
        self._next = opened_ns, index + header["frames"]
        self.frames += header["frames"]
        pcm = np.rint(np.frombuffer(samples, "<f4") * 32767).astype("<i2")
        self._wav.writeframes(pcm.tobytes())


def reference(options: argparse.Namespace, config: Config) -> int:
    """Write a WAV file until Ctrl-C, or for `--seconds`.

    Raises:
        DaemonError: no daemon answers, or the device was opened at another rate meanwhile.
        OSError: the file can't be written.
    """
    with Client(config) as client:
        client.call("ping")
        with options.output.open("wb") as file, wave.open(file, "wb") as wav:
            wav.setparams((1, 2, 48_000, 0, "NONE", ""))
            recording = _Recording(wav)
            with suppress(KeyboardInterrupt):
                for header, samples in _messages(client, options.seconds):
                    recording.add(header, samples)
    seconds = recording.frames / recording.rate if recording.rate else 0.0
    missing = f", {recording.missing} frames missing" if recording.missing else ""
    print(f"{options.output}: {seconds:.2f} s{missing}", file=sys.stderr)
    return 0


def _messages(client: Client, seconds: float | None) -> Iterator[tuple[dict[str, Any], bytes]]:
    deadline = time.monotonic() + (float("inf") if seconds is None else seconds)
    while (left_s := deadline - time.monotonic()) > 0:
        for message in client.reference(min(left_s, _PATIENCE_S)):
            yield message
            if time.monotonic() >= deadline:
                return
        client.call("ping")
