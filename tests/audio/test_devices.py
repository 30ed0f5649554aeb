"""Names of devices, and what is said when PortAudio refuses."""

import sys

import pytest
import sounddevice

from tests.sound_server import SoundServer
from utterd.audio.devices import Device, _device, find_device
from utterd.audio.portaudio import explain
from utterd.audio.sink import SinkError


def device(index: int, name: str, api: str = "ALSA", card: str = "", default: bool = False):
    return Device(index, name, api, card, 2, 48_000, default)


DEVICES = [
    device(0, "HDA Intel PCH: ALC257 Analog", card="PCH"),
    device(1, "HDA Intel PCH: HDMI 0", card="PCH"),
    device(2, "USB Audio Device: -", card="Device"),
    device(3, "spk", "JACK Audio Connection Kit"),
    device(4, "spk", "ALSA"),
    device(5, "default", default=True),
]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("default", 5),
        ("Device", 2),
        ("CARD=device", 2),
        ("analog", 0),
        ("HDMI", 1),
        ("spk, JACK", 3),
        ("spk, alsa", 4),
        ("USB Audio Device: -", 2),
    ],
)
def test_a_name_means_one_device(name: str, index: int) -> None:
    assert find_device(name, DEVICES).index == index


@pytest.mark.parametrize(
    ("name", "says", "lists"),
    [
        ("PCH", "means several", ["ALC257 Analog", "HDMI 0"]),
        ("spk", "means several", ["JACK", "ALSA"]),
        ("Bluetooth", "no sound device 'Bluetooth'", ["HDMI 0", "USB", "spk", "the default"]),
        ("9", "no sound device '9'", ["HDMI 0"]),
        ("hw:0", "no sound device 'hw:0'", ["HDMI 0"]),
    ],
)
def test_what_is_no_name_gets_the_list(name: str, says: str, lists: list[str]) -> None:
    with pytest.raises(SinkError) as caught:
        find_device(name, DEVICES)
    assert caught.value.reason == "missing"
    assert says in caught.value.message
    assert "\n" not in caught.value.message
    for part in lists:
        assert part in caught.value.message


def test_no_device_at_all() -> None:
    with pytest.raises(SinkError, match="there is no default sound device; there is none at all"):
        find_device("default", [])


def test_alsas_numbers_are_no_part_of_a_name() -> None:
    entry = {
        "name": "USB Audio: - (hw:7,0)",
        "max_output_channels": 2,
        "default_samplerate": 44_100.0,
    }
    assert _device(4, entry, "ALSA", 4) == Device(4, "USB Audio: -", "ALSA", "", 2, 44_100, True)


def test_the_list_of_a_real_server(sound_server: SoundServer) -> None:
    program = (
        "from utterd.audio.devices import list_devices\n"
        "for device in list_devices(fresh=True): print(device)"
    )
    listed = sound_server.run(sys.executable, "-c", program).splitlines()
    assert any(line.startswith("pipewire (ALSA") for line in listed)
    assert sum(line.endswith("the default)") for line in listed) == 1


@pytest.mark.parametrize(
    ("code", "reason", "says"),
    [(-9985, "busy", "another program holds it"), (-9996, "failed", "can't be opened: it broke")],
)
def test_what_portaudio_refuses_is_explained(code: int, reason: str, says: str) -> None:
    """Made-up errors: no device here can be held by another program."""
    error = explain(DEVICES[2], sounddevice.PortAudioError("it broke", code))
    assert error.reason == reason
    assert says in error.message
    assert "USB Audio Device: - (ALSA, card Device" in error.message
