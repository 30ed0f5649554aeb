"""Every case of the guest, in one boot of a real kernel."""

import ast
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.vm import machine

GUEST = Path(__file__).with_name("guest.py")
CASES = [
    node.name
    for node in ast.parse(GUEST.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")
]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "utterd-tests"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the guest printed, by case."""
    work = tmp_path_factory.mktemp("vm")
    console = machine.boot(CACHE, work, GUEST)
    shutil.rmtree(work)
    lines = [line[5:] for line in console.splitlines() if line.startswith("CASE ")]
    return {case["case"]: case for case in map(json.loads, lines)}


@pytest.mark.slow
@pytest.mark.timeout(machine.TIMEOUT_S + 120)
@pytest.mark.parametrize("case", CASES)
def test_on_a_real_kernel(results, case):
    assert case in results, "the guest did not come to this case"
    assert not results[case]["error"], results[case]["error"]
