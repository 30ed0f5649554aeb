"""Every case of the guest, in one boot of a real kernel."""

import shutil
from pathlib import Path

import pytest

from tests import guests, workers
from tests.vm import machine

GUEST = Path(__file__).with_name("guest.py")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the guest printed, by case."""
    work = tmp_path_factory.mktemp("vm")
    console = machine.boot(workers.kept(), work, GUEST)
    shutil.rmtree(work)
    return guests.results(console)


@pytest.mark.slow
@pytest.mark.timeout(machine.TIMEOUT_S + 120)
@pytest.mark.parametrize("case", guests.names(GUEST))
def test_on_a_real_kernel(results, case):
    assert case in results, "the guest did not come to this case"
    assert not results[case]["error"], results[case]["error"]
