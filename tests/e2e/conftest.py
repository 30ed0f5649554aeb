"""A daemon on the null sink, which keeps real time: for all that need no ears."""

import pytest

from tests.daemon_process import DaemonProcess


@pytest.fixture(scope="session")
def quiet_daemon(tmp_path_factory, voices_dir):
    folder = tmp_path_factory.mktemp("quiet")
    environment = {"UTTERD_AUDIO_SINK": "null"}
    process = DaemonProcess(
        folder / "run", voices_dir, "--voice", "joe-us", environment=environment
    )
    yield process
    process.stop()
