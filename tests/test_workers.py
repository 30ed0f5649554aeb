"""The whole suite is spread over processes, which make what they share only once."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import workers

ROOT = Path(__file__).parents[1]
MAKE = """
import sys, time
from pathlib import Path
from tests import workers
made, log = Path(sys.argv[1]), Path(sys.argv[2])
with workers.alone(made):
    if not made.exists():
        time.sleep(0.2)
        with log.open("a") as file:
            file.write("made\\n")
        made.touch()
"""


@pytest.mark.parametrize("asked", [["tests"], ["."], [str(ROOT / "tests/")]])
def test_the_whole_suite_is_spread(asked):
    assert workers.processes(asked, ROOT) == workers.PROCESSES


@pytest.mark.parametrize(
    "asked",
    [["tests/audio"], ["tests/audio/test_ring.py::test_one"], ["tests/vm", "tests/e2e"]],
)
def test_a_part_of_it_is_not(asked):
    assert workers.processes(asked, ROOT) == 0


def test_every_room_has_its_place():
    rooms = {path.relative_to(workers.TESTS).parts[0] for path in workers.TESTS.rglob("test_*.py")}
    assert {room for room in rooms if not room.endswith(".py")} == set(workers.ROOMS)


def test_what_is_kept_is_made_by_one_process_and_awaited_by_others(tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, "-c", MAKE, str(tmp_path / "made"), str(log)]
    started = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert log.read_text() == "made\n"
