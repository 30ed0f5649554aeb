"""Output devices: what there is, and the one that a stable name means.

PortAudio numbers devices and ALSA numbers cards as they come, so neither number is a name here:
`hw:1,0` is left out of what a name is compared with.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utterd.audio.sink import SinkError

DEFAULT = "default"
_ALSA_NUMBERS = re.compile(r"\s*\((?:plug)?hw:(\d+),\d+\)")
_ALSA_CARDS = Path("/proc/asound")


@dataclass(frozen=True, slots=True)
class Device:
    """An output device as PortAudio knows it."""

    index: int
    """PortAudio's number; good until the list is made anew."""
    name: str
    """Without ALSA's numbers."""
    host_api: str
    card: str
    """ALSA's id of the card, such as `PCH`; empty where there is none."""
    channels: int
    rate: int
    """Its own rate in Hz."""
    default: bool

    def __str__(self) -> str:
        card = f", card {self.card}" if self.card else ""
        mark = ", the default" if self.default else ""
        return f"{self.name} ({self.host_api}{card}, {self.rate} Hz{mark})"


def list_devices(*, fresh: bool = False) -> list[Device]:
    """Find all output devices.

    Args:
        fresh: Let PortAudio make its list anew; only where this process has no stream open.

    Raises:
        SinkError: PortAudio is missing or broken.
    """
    sounddevice = load_portaudio()
    try:
        if fresh:
            sounddevice._terminate()
            sounddevice._initialize()
        apis = sounddevice.query_hostapis()
        default = int(sounddevice.default.device[1])
        found = [
            _device(index, entry, apis[entry["hostapi"]]["name"], default)
            for index, entry in enumerate(sounddevice.query_devices())
        ]
    except sounddevice.PortAudioError as error:
        raise SinkError("failed", f"PortAudio does not start: {error}") from None
    return [device for device in found if device.channels > 0]


def load_portaudio() -> Any:  # noqa: ANN401 - sounddevice has no types
    """Import sounddevice, which starts PortAudio.

    Raises:
        SinkError: The library is not installed, or does not start.
    """
    try:
        import sounddevice  # noqa: PLC0415 - it starts PortAudio, which may hang
    except OSError as error:
        raise SinkError(
            "failed", f"PortAudio can't be loaded ({error}): install the package libportaudio2"
        ) from None
    return sounddevice


def find_device(name: str, devices: list[Device]) -> Device:
    """Find the one device that a name means.

    Args:
        name: `default`, an ALSA card's id, or a part of `name, host API` in either case.
        devices: What there is.

    Raises:
        SinkError: None or several are meant; the message lists what there is.
    """
    if name == DEFAULT:
        matches = [device for device in devices if device.default]
    else:
        wanted = name.casefold().removeprefix("card=")
        exact = [d for d in devices if wanted in (d.card.casefold(), d.name.casefold())]
        matches = exact or [d for d in devices if wanted in f"{d.name}, {d.host_api}".casefold()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise SinkError(
            "missing",
            f"the name {name!r} means several sound devices: {_listed(matches)}; write more of it",
        )
    what = "there is no default sound device" if name == DEFAULT else f"no sound device {name!r}"
    raise SinkError("missing", f"{what}; there is {_listed(devices)}")


def _device(index: int, entry: dict[str, Any], host_api: str, default: int) -> Device:
    name = str(entry["name"])
    numbers = _ALSA_NUMBERS.search(name)
    card = ""
    if numbers:
        path = _ALSA_CARDS / f"card{numbers[1]}" / "id"
        card = path.read_text().strip() if path.exists() else ""
    return Device(
        index=index,
        name=_ALSA_NUMBERS.sub("", name),
        host_api=host_api,
        card=card,
        channels=int(entry["max_output_channels"]),
        rate=round(entry["default_samplerate"]),
        default=index == default,
    )


def _listed(devices: list[Device]) -> str:
    return "; ".join(map(str, devices)) if devices else "none at all"
