"""The device sink: PortAudio through sounddevice, with the C callback handed to it as it is."""

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from utterd.audio import _callback
from utterd.audio.devices import Device, find_device, list_devices, load_portaudio
from utterd.audio.feed import LEAD_MS
from utterd.audio.messages import Configure
from utterd.audio.servers import introduce
from utterd.audio.sink import Format, SinkError, takes_sound

_PREFERRED_RATE = 48_000
"""Taken where the device can do it: most hardware and all sound servers run at it."""
_PERIODS_AHEAD = 3
"""Latency asked for; PortAudio's buffer on ALSA is one period more. Many short periods stand a
thread that is woken late better than few long ones of the same sum: as soon as one was taken, it is
filled up again."""
_LARGER_LATENCIES_MS = (25.0, 50.0, 200.0)
"""For servers that work in steps of 1024 samples (PipeWire in virtual machines), 2048, and more."""
_FIRST_SOUND_SECONDS = 1.7
"""PulseAudio lets a new stream wait for 1.5 s."""
_NEXT_SOUND_SECONDS = 0.4
_WAKE_SECONDS = 0.8
_WAKE_SLOWER = 2.0
"""A device that was let go may take so long to sound, or so many times what it took at first."""
_PACE_SECONDS = 1.0
_PACE_SHARE = 0.9
_LATE_TIMES = 3
_LATE_SECONDS = 600.0
"""A device that ran empty so often in such a time has too small a buffer for this machine."""
_UNAVAILABLE = -9985  # paDeviceUnavailable
_BAD_SAMPLE_FORMAT = -9994  # paSampleFormatNotSupported


class DeviceSink:
    """A sound device, opened anew as often as needed.

    The smallest buffer is tried first. Where the sound server works in larger steps than that,
    it takes no sound, or only now and then; then a larger buffer is tried. So it is where the
    machine is late for it again and again.

    Args:
        core: The audio thread's data.
        configure: `device`, `rate`, `period_ms`, `ramp_ms`.
    """

    def __init__(self, core: _callback.Core, configure: Configure) -> None:
        self.name = configure.device
        self._core = core
        self._configure = configure
        self._stream: Any = None
        self._format: Format | None = None
        self._fresh = False
        latency_ms = _PERIODS_AHEAD * configure.period_ms
        self._latencies = [latency_ms, *(ms for ms in _LARGER_LATENCIES_MS if ms > latency_ms)]
        self._pace_from = 0.0, 0
        self._empty_before = 0
        self._ran_empty: deque[float] = deque(maxlen=_LATE_TIMES)
        """When it was seen, in s, that sound was missing in the device."""
        self._again: Callable[[], Format] | None = None
        """Opens the device as it was opened last, where it was let go since."""
        self._patience = 0.0
        introduce(configure.role, _PREFERRED_RATE)

    def open(self) -> Format:
        """Find the device by its name and play silence on it.

        One that was let go is opened as it was, which takes a tenth of the time; if that fails it
        is looked for again.

        Raises:
            SinkError: The device is not there, is busy, takes no format of ours, or no sound.
        """
        return self._reopen() or self._find_and_open()

    def _reopen(self) -> Format | None:
        again, self._again = self._again, None
        if again is None:
            return None
        try:
            opened = again()
        except load_portaudio().PortAudioError:
            self.close()  # another device has this one's number now, or it is not as it was
            return None
        if not takes_sound(self._core, 1, self._patience):
            self.close()
            raise SinkError(
                "stalled", f"{opened.device} takes no sound any more: unplugged, or stuck?"
            )
        return self._runs(opened, again)

    def _runs(self, opened: Format, again: Callable[[], Format]) -> Format:
        self._again = again
        self._format = opened
        self._pace_from = time.monotonic(), self._core.taken
        return opened

    def _find_and_open(self) -> Format:
        fresh, self._fresh = self._fresh, True  # from now on PortAudio's list may be stale
        device = find_device(self.name, list_devices(fresh=fresh))
        patience = _FIRST_SOUND_SECONDS
        while True:
            begin = time.monotonic()
            opened, again = self._open_stream(device, self._latencies[0])
            if takes_sound(self._core, 3 * opened.period_frames, patience):
                took = time.monotonic() - begin
                self._patience = max(_WAKE_SECONDS, _WAKE_SLOWER * took)
                return self._runs(opened, again)
            self.close()
            if len(self._latencies) == 1:
                raise SinkError(
                    "stalled", f"{device} is open but takes no sound: is the sound server stuck?"
                )
            del self._latencies[0]
            patience = _NEXT_SOUND_SECONDS

    def _open_stream(
        self, device: Device, latency_ms: float
    ) -> tuple[Format, Callable[[], Format]]:
        sounddevice = load_portaudio()
        channels = min(2, device.channels)
        try:
            rate = self._choose_rate(sounddevice, device, channels)
            start = partial(self._start, sounddevice, device, channels, rate, latency_ms=latency_ms)
            again = partial(start, sample_format="float32")
            try:
                return again(), again
            except sounddevice.PortAudioError as error:
                self.close()
                if _code(error) != _BAD_SAMPLE_FORMAT:
                    raise
            again = partial(start, sample_format="int16")
            return again(), again
        except sounddevice.PortAudioError as error:
            self.close()
            raise explain(device, error) from None

    def _choose_rate(
        self,
        sounddevice: Any,  # noqa: ANN401 - it has no types
        device: Device,
        channels: int,
    ) -> int:
        for rate in (self._configure.rate, _PREFERRED_RATE):
            if rate:
                try:
                    sounddevice.check_output_settings(
                        device=device.index, channels=channels, samplerate=rate
                    )
                except sounddevice.PortAudioError as error:
                    if _code(error) == _UNAVAILABLE:
                        raise
                else:
                    return rate
        return device.rate

    def _start(
        self,
        sounddevice: Any,  # noqa: ANN401 - it has no types
        device: Device,
        channels: int,
        rate: int,
        *,
        sample_format: str,
        latency_ms: float,
    ) -> Format:
        ffi = sounddevice._ffi
        period_frames = max(1, round(self._configure.period_ms * rate / 1000))
        self._stream = sounddevice._StreamBase(
            kind="output",
            samplerate=rate,
            blocksize=period_frames,
            device=device.index,
            channels=channels,
            dtype=sample_format,
            latency=latency_ms / 1000,
            clip_off=True,
            dither_off=True,
            callback=ffi.cast("PaStreamCallback *", _callback.CALLBACK),
            userdata=ffi.cast("void *", self._core.address),
        )
        granted_ms = 1000 * float(self._stream.latency)
        self._core.configure(
            rate=rate,
            channels=channels,
            period_frames=period_frames,
            ramp_ms=self._configure.ramp_ms,
            lead_ms=LEAD_MS,
            latency_ms=granted_ms,
            int16=sample_format == "int16",
            speed=1.0,
            wake_ms=self._configure.wake_ms,
            noise=self._configure.noise,
        )
        self._stream.start()
        name = f"{device.name} ({device.host_api})"
        return Format(name, rate, channels, period_frames, granted_ms)

    def trouble(self) -> SinkError | None:
        """Some host APIs say that they have stopped; others are only noticed by their silence."""
        if self._stream is None or self._format is None:
            return None
        if not self._stream.active:
            return SinkError(
                "vanished", f"the sound device {self.name!r} has stopped: is it plugged in?"
            )
        return self._slow(self._format) or self._late(self._format)

    def _slow(self, opened: Format) -> SinkError | None:
        """Whether sound has been taken at much less than its rate, for a while."""
        begin, taken_before = self._pace_from
        now, taken = time.monotonic(), self._core.taken
        if now - begin < _PACE_SECONDS:
            return None
        self._pace_from = now, taken
        share = (taken - taken_before) / ((now - begin) * opened.rate)
        if share >= _PACE_SHARE or share == 0.0 or len(self._latencies) == 1:
            return None  # not at all is another matter: the device stands still
        return SinkError(
            "stalled",
            f"{opened.device} takes sound at {share:.0%} of its rate: its buffer of "
            f"{opened.latency_ms:.0f} ms is too small, opening it with {self._larger():.0f} ms",
        )

    def _late(self, opened: Format) -> SinkError | None:
        """Whether it ran empty again and again; told when nothing sounds."""
        empty = self._core.host_underruns
        if empty != self._empty_before:  # one hold-up, however often it was counted
            self._empty_before = empty
            self._ran_empty.append(time.monotonic())
        if len(self._ran_empty) < _LATE_TIMES or len(self._latencies) == 1:
            return None
        seconds = self._ran_empty[-1] - self._ran_empty[0]
        if seconds > _LATE_SECONDS or self._core.place()[0] != 0:
            return None
        return SinkError(
            "stalled",
            f"{opened.device} ran empty {_LATE_TIMES} times within {seconds:.0f} s: this machine "
            f"is late for a buffer of {opened.latency_ms:.0f} ms, opening it with "
            f"{self._larger():.0f} ms",
        )

    def _larger(self) -> float:
        """Choose the next larger buffer for the next opening; returns its latency in ms."""
        self._ran_empty.clear()
        del self._latencies[0]
        return self._latencies[0]

    def close(self) -> None:
        """Drop what the device still has and close it. This may hang; the caller limits it."""
        self._again = None
        self.release()

    def release(self) -> None:
        """The same, but know how to open it again."""
        stream, self._stream = self._stream, None
        self._format = None
        if stream is not None:
            stream.abort(ignore_errors=True)
            stream.close(ignore_errors=True)


def _code(error: Exception) -> int:
    return int(error.args[1]) if len(error.args) > 1 else 0


def explain(device: Device, error: Exception) -> SinkError:
    """Say in one line what PortAudio's error means for a device."""
    text = str(error.args[0]) if error.args else str(error)
    if _code(error) == _UNAVAILABLE:
        return SinkError("busy", f"{device} can't be had: another program holds it, or it is gone")
    return SinkError("failed", f"{device} can't be opened: {text}")
