"""What sound servers are told of our stream."""

import os

import pytest

from utterd.audio.servers import PULSE_ICON, PULSE_NAME, PULSE_ROLE, introduce

VARIABLES = (
    "PIPEWIRE_ALSA",
    "PIPEWIRE_LATENCY",
    PULSE_ROLE,
    PULSE_NAME,
    PULSE_ICON,
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable is set before, and none after."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("role", "pipewire", "pulse"),
    [
        ("Notification", "Notification", "event"),
        ("notification", "Notification", "event"),
        ("event", "Notification", "event"),
        ("a11y", "Accessibility", "a11y"),
        ("phone", "Communication", "phone"),
        ("Navigation", "Navigation", "Navigation"),
        ("announcement", "announcement", "announcement"),
    ],
)
def test_each_server_gets_its_own_word_for_a_role(role: str, pipewire: str, pulse: str) -> None:
    introduce(role, 48_000)
    assert f"media.role={pipewire}" in os.environ["PIPEWIRE_ALSA"].split()
    assert os.environ[PULSE_ROLE] == pulse


def test_without_a_role_none_is_told() -> None:
    introduce("", 48_000)
    assert "media.role" not in os.environ["PIPEWIRE_ALSA"]
    assert PULSE_ROLE not in os.environ
    assert "application.name=utterd" in os.environ["PIPEWIRE_ALSA"]
    assert os.environ[PULSE_NAME] == "utterd"
    assert os.environ["PIPEWIRE_LATENCY"] == "256/48000"


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPEWIRE_ALSA", "{ node.name=lobby media.role=Music }")
    monkeypatch.setenv("PIPEWIRE_LATENCY", "1024/48000")
    monkeypatch.setenv(PULSE_NAME, "lobby")
    introduce("", 48_000)
    told = os.environ["PIPEWIRE_ALSA"].strip("{} ").split()
    # Of two values the last one counts.
    assert dict(pair.split("=") for pair in told)["node.name"] == "lobby"
    assert dict(pair.split("=") for pair in told)["media.role"] == "Music"
    assert os.environ["PIPEWIRE_LATENCY"] == "1024/48000"
    assert os.environ[PULSE_NAME] == "lobby"


def test_a_configured_role_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPEWIRE_ALSA", "media.role=Music")
    monkeypatch.setenv(PULSE_ROLE, "music")
    introduce("Navigation", 48_000)
    told = os.environ["PIPEWIRE_ALSA"].strip("{} ").split()
    assert dict(pair.split("=") for pair in told)["media.role"] == "Navigation"
    assert os.environ[PULSE_ROLE] == "Navigation"
