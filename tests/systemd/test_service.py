"""Every case of the guest, in one boot of a real systemd."""

import os
import shutil
from pathlib import Path

import pytest

from tests import bloat, guests, workers
from tests.systemd import container
from tests.systemd.installed import SCRIPT

GUEST = Path(__file__).with_name("guest.py")
CONFIG = """
[paths]
data = "/srv/utterd"
[engine]
voice = "joe-us"
[audio]
sink = "null"
[tune]
profile = "kiosk"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory, staged, kept_voices):
    """What the guest printed, by case."""
    work = tmp_path_factory.mktemp("container")
    config = work / "utterd.toml"
    config.write_text(CONFIG)
    copy = staged.with_name("local")
    shutil.copytree(staged / "usr/local", copy, symlinks=True, copy_function=os.link)
    shown = {
        kept_voices: "/srv/utterd/voices",
        config: "/etc/utterd/utterd.toml",
        SCRIPT: "/install.sh",
        Path(bloat.__file__): "/test/tests/bloat.py",
    }
    log = container.boot(container.root(workers.kept()), work, GUEST, shown, {copy: "/usr/local"})
    shutil.rmtree(copy)
    return guests.results(log)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", guests.names(GUEST))
def test_under_a_real_systemd(results, case):
    assert case in results, "the guest did not come to this case"
    assert not results[case]["error"], results[case]["error"]
