"""Sinks without a device, at the pace of one: a WAV file, or nothing.

The same C callback runs as with a device, from a thread with absolute deadlines.
"""

import os
import struct
from pathlib import Path

from utterd.audio._callback import Core
from utterd.audio.feed import lead_ms
from utterd.audio.messages import Configure
from utterd.audio.sink import Format, SinkError, takes_sound

DEFAULT_RATE = 48_000
_FIRST_PERIOD_SECONDS = 5.0
_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_SAMPLE_BYTES = 2
_CHANNELS = 2


class PacedSink:
    """The null sink: silence that takes its time.

    Args:
        core: The audio thread's data.
        configure: `rate` (0 is 48000), `period_ms`, `ramp_ms`, `speed`.
    """

    def __init__(self, core: Core, configure: Configure) -> None:
        self.name = "null"
        self._core = core
        self._configure = configure
        self._rate = configure.rate or DEFAULT_RATE

    def open(self) -> Format:
        """Start the thread."""
        return self._start("null", -1, 0)

    def _start(self, name: str, fd: int, frames: int) -> Format:
        period_frames = max(1, round(self._configure.period_ms * self._rate / 1000))
        period_ms = 1000 * period_frames / self._rate
        speed = self._configure.speed
        self._core.configure(
            rate=self._rate,
            channels=_CHANNELS,
            period_frames=period_frames,
            ramp_ms=self._configure.ramp_ms,
            lead_ms=lead_ms(speed),
            latency_ms=period_ms,
            int16=True,
            speed=speed,
            wake_ms=self._configure.wake_ms,
            noise=self._configure.noise,
        )
        if error := self._core.start_paced(fd, frames):
            raise SinkError("failed", f"no thread for the sink {self.name}: {os.strerror(error)}")
        if not takes_sound(self._core, 1, _FIRST_PERIOD_SECONDS):
            self.close()
            raise SinkError("stalled", f"the thread of the sink {self.name} does not run")
        return Format(name, self._rate, _CHANNELS, period_frames, period_ms / speed, speed)

    def trouble(self) -> SinkError | None:
        """Nothing can go wrong."""
        return None

    def close(self) -> None:
        """End the thread."""
        self._core.stop_paced()

    def release(self) -> None:
        """The same: opening it takes no time."""
        self.close()


class WavSink(PacedSink):
    """A WAV file of 16-bit PCM whose header is right after every period, whatever happens.

    A file of the same format is continued, so that a restarted player spoils nothing. Of the
    silence between utterances half a second is kept.
    """

    def __init__(self, core: Core, configure: Configure) -> None:
        super().__init__(core, configure)
        self._path = Path(configure.wav_path)
        self.name = str(self._path)
        self._fd = -1

    def open(self) -> Format:
        """Create or continue the file and start the thread.

        Raises:
            SinkError: It can't be written, or is something else.
        """
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise SinkError("failed", f"can't write {self._path}: {error.strerror}") from None
        try:
            frames = self._continue_or_begin(fd)
            opened = self._start(f"wav {self._path}", fd, frames)
        except OSError as error:
            os.close(fd)
            raise SinkError("failed", f"can't write {self._path}: {error.strerror}") from None
        except SinkError:
            os.close(fd)
            raise
        self._fd = fd
        return opened

    def _continue_or_begin(self, fd: int) -> int:
        """Go to the end of the samples.

        Returns:
            The number of frames before it.
        """
        found = os.pread(fd, _HEADER.size, 0)
        frame_bytes = _CHANNELS * _SAMPLE_BYTES
        if not found:
            os.pwrite(fd, self._header(0), 0)
        elif len(found) < _HEADER.size or found[:4] + found[8:40] != self._format(found):
            raise SinkError(
                "failed",
                f"{self._path} is there and no 16-bit WAV file of {self._rate} Hz with "
                f"{_CHANNELS} channels: remove it or name another",
            )
        frames = struct.unpack_from("<I", found, 40)[0] // frame_bytes if found else 0
        end = _HEADER.size + frames * frame_bytes
        os.ftruncate(fd, end)  # samples that the header did not count yet
        os.lseek(fd, end, os.SEEK_SET)
        return frames

    def _format(self, found: bytes) -> bytes:
        header = self._header(0)
        return header[:4] + header[8:40] if found else b""

    def _header(self, data_bytes: int) -> bytes:
        frame_bytes = _CHANNELS * _SAMPLE_BYTES
        return _HEADER.pack(
            b"RIFF",
            _HEADER.size - 8 + data_bytes,
            b"WAVE",
            b"fmt ",
            16,
            1,
            _CHANNELS,
            self._rate,
            self._rate * frame_bytes,
            frame_bytes,
            8 * _SAMPLE_BYTES,
            b"data",
            data_bytes,
        )

    def trouble(self) -> SinkError | None:
        """The disk may be full."""
        error = self._core.wav_errno
        if not error:
            return None
        return SinkError(
            "failed", f"can't write {self._path}: {os.strerror(error)}; free some room or rename it"
        )

    def close(self) -> None:
        """End the thread, close the file."""
        super().close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
