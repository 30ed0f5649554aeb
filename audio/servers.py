"""What sound servers are told of our stream: its name, what it is for, how much they may buffer.

PortAudio has no words for it, so it goes through the environment, which the clients of PipeWire and
PulseAudio behind ALSA read whenever a stream is opened. What the user has set there
stays, but for the role where one is configured.
"""

import os

NAME = "utterd"
ICON = "audio-speakers"
_QUANTUM = 256
PULSE_NAME = "PULSE_PROP_OVERRIDE_application.name"
PULSE_ICON = "PULSE_PROP_application.icon_name"
PULSE_ROLE = "PULSE_PROP_media.role"
_PULSE_ROLES = {
    "Accessibility": "a11y",
    "Communication": "phone",
    "Game": "game",
    "Movie": "video",
    "Music": "music",
    "Notification": "event",
    "Production": "production",
    "Test": "test",
}
"""PipeWire's roles, and what PulseAudio calls them."""
_PIPEWIRE_ROLES = {
    **{name.casefold(): name for name in _PULSE_ROLES},
    **{pulse: name for name, pulse in _PULSE_ROLES.items()},
}


def introduce(role: str, rate: int) -> None:
    """Set this process's environment for all streams that it opens from now on.

    Args:
        role: A name of PipeWire's or PulseAudio's, translated for the other one, or any that the
            server's configuration knows; "" for none.
        rate: Of the device, in Hz.
    """
    role = _PIPEWIRE_ROLES.get(role.casefold(), role)
    properties = [f"application.name={NAME} node.name={NAME} application.icon-name={ICON}"]
    properties += [os.environ.get("PIPEWIRE_ALSA", "").strip(" {}")]
    if role:
        properties += [f"media.role={role}"]
        os.environ[PULSE_ROLE] = _PULSE_ROLES.get(role, role)
    os.environ["PIPEWIRE_ALSA"] = "{ " + " ".join(filter(None, properties)) + " }"
    os.environ.setdefault(PULSE_NAME, NAME)
    os.environ.setdefault(PULSE_ICON, ICON)
    # A server may otherwise keep seconds in its buffer.
    os.environ.setdefault("PIPEWIRE_LATENCY", f"{_QUANTUM}/{rate}")
