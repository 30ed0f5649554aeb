"""A made-up machine with a tuner on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import workers
from tests.sysconfig import machines
from tests.sysconfig.pynvml_stand_in import Board, build
from utterd.sysconfig.config import PROFILES, Config
from utterd.sysconfig.journal import Journal
from utterd.sysconfig.knob import Machine
from utterd.sysconfig.nvml import Nvml
from utterd.sysconfig.sysfs import Sysfs
from utterd.sysconfig.tuner import Tuner

CAR = Config(PROFILES["car"])


@dataclass
class Box:
    """A machine, its GPU, and how to get a fresh tuner of it (as each run of the program does)."""

    root: Path
    fs: Sysfs
    board: Board
    folder: Path

    def tuner(self) -> Tuner:
        nvml = Nvml.of(build(self.board))
        return Tuner(Machine(self.fs, nvml), Journal(self.folder))

    def snapshot(self) -> dict[str, str]:
        board = self.board
        return machines.snapshot(self.root) | {
            "persistence": str(board.persistence),
            "locked": str(board.locked),
        }


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory, as the journal's own place is: it is synced after each entry."""
    with workers.in_memory() as folder:
        yield folder


@pytest.fixture
def box(tmp_path) -> Box:
    root = machines.build(tmp_path / "root", buffers=65536)
    return Box(root, machines.PstateSysfs(root), Board(), tmp_path / "journal")
