"""A few hundred requests of all kinds: nothing is left open, and each has exactly one end.

How large the processes grow over 120,000 is measured by tests/bench/soak.py.
"""

import time

import pytest

from tests import coded
from tests.daemon_process import DaemonProcess
from tests.kiosk import Kiosk
from tests.measuring import holdings, leaks

WARM = 60
"""Requests after which every kind was made once, and its lasting things are there."""
REQUESTS = 300


@pytest.fixture
def daemon(tmp_path):
    coded.build(tmp_path / "data" / "voices" / "coded")  # a network that costs nothing
    environment = {
        "UTTERD_AUDIO_SINK": "null",
        "UTTERD_AUDIO_SPEED": "200",
        "UTTERD_AUDIO_PERIOD_MS": "200",
        "UTTERD_LOG_LEVEL": "warning",
    }
    process = DaemonProcess(
        tmp_path / "run", tmp_path / "data", "--voice", "coded", environment=environment
    )
    yield process
    process.stop()


def test_hundreds_of_requests_leave_nothing_behind(daemon):
    kiosk = Kiosk(daemon, WARM + REQUESTS, ["en"], seed=1)
    try:
        _ask(kiosk, WARM)
        before = holdings(daemon)
        _ask(kiosk, WARM + REQUESTS)
        deadline = time.monotonic() + 20
        while (found := leaks(before, holdings(daemon))) and time.monotonic() < deadline:
            time.sleep(0.1)  # connections of clients that are gone are closed in the background
        assert not found
    finally:
        kiosk.close()
    assert not kiosk.ledger.faults
    assert set(kiosk.ledger.ends[: kiosk.asked]) == {1}
    assert kiosk.ledger.kinds["ended"] > REQUESTS / 2
    assert kiosk.ledger.kinds["cancelled"]


def _ask(kiosk: Kiosk, requests: int) -> None:
    while kiosk.asked < requests:
        kiosk.ask()
    kiosk.settle(0)
