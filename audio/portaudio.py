"""The device sink: PortAudio through sounddevice, with the C callback handed to it as it is."""

import os
from typing import Any

from utterd.audio import _callback
from utterd.audio.devices import Device, find_device, list_devices, load_portaudio
from utterd.audio.feed import LEAD_MS
from utterd.audio.messages import Configure
from utterd.audio.sink import Format, SinkError

_PREFERRED_RATE = 48_000
"""Taken where the device can do it: most hardware and all sound servers run at it."""
_UNAVAILABLE = -9985  # paDeviceUnavailable
_BAD_SAMPLE_FORMAT = -9994  # paSampleFormatNotSupported


class DeviceSink:
    """A sound device, opened anew as often as needed.

    Args:
        core: The audio thread's data.
        configure: `device`, `rate`, `channels`, `period_ms`, `ramp_ms`.
    """

    def __init__(self, core: _callback.Core, configure: Configure) -> None:
        self.name = configure.device
        self._core = core
        self._configure = configure
        self._stream: Any = None
        self._fresh = False
        # A sound server may otherwise keep seconds in its buffer.
        os.environ.setdefault("PIPEWIRE_LATENCY", f"256/{_PREFERRED_RATE}")

    def open(self) -> Format:
        """Find the device by its name and start a stream of zeros.

        Raises:
            SinkError: The device is not there, is busy, or does not take any format of ours.
        """
        fresh, self._fresh = self._fresh, True  # from now on PortAudio's list may be stale
        device = find_device(self.name, list_devices(fresh=fresh))
        sounddevice = load_portaudio()
        channels = self._configure.channels or min(2, device.channels)
        try:
            rate = self._choose_rate(sounddevice, device, channels)
            for sample_format in ("float32", "int16"):
                try:
                    return self._start(sounddevice, device, channels, rate, sample_format)
                except sounddevice.PortAudioError as error:
                    self.close()
                    if _code(error) != _BAD_SAMPLE_FORMAT or sample_format == "int16":
                        raise
        except sounddevice.PortAudioError as error:
            raise explain(device, error) from None
        raise AssertionError

    def _choose_rate(self, sounddevice: Any, device: Device, channels: int) -> int:  # noqa: ANN401
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
        sounddevice: Any,  # noqa: ANN401
        device: Device,
        channels: int,
        rate: int,
        sample_format: str,
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
            latency="low",
            clip_off=True,
            dither_off=True,
            callback=ffi.cast("PaStreamCallback *", _callback.CALLBACK),
            userdata=ffi.cast("void *", self._core.address),
        )
        latency_ms = 1000 * float(self._stream.latency)
        self._core.configure(
            rate=rate,
            channels=channels,
            period_frames=period_frames,
            ramp_ms=self._configure.ramp_ms,
            lead_ms=LEAD_MS,
            latency_ms=latency_ms,
            int16=sample_format == "int16",
            speed=1.0,
        )
        self._stream.start()
        name = f"{device.name} ({device.host_api})"
        return Format(name, rate, channels, period_frames, latency_ms)

    def trouble(self) -> SinkError | None:
        """Some host APIs say that they have stopped; others are only noticed by their silence."""
        if self._stream is None or self._stream.active:
            return None
        return SinkError(
            "vanished", f"the sound device {self.name!r} has stopped: is it plugged in?"
        )

    def close(self) -> None:
        """Drop what the device still has and close it. This may hang; the caller limits it."""
        stream, self._stream = self._stream, None
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
