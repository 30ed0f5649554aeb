"""The product installed once, for all tests of units."""

import os
import shutil

import pytest

from tests import workers
from tests.systemd import installed


@pytest.fixture(scope="session")
def staged():
    """A folder that stands for `/` with utterd installed under its /usr/local."""
    with workers.in_memory() as folder:
        done = installed.run("install", folder / "staged")
        assert done.returncode == 0, done.stderr
        yield folder / "staged"


@pytest.fixture
def copy(staged):
    """A copy of it, by links."""
    folder = staged.with_name("copy")
    shutil.copytree(staged, folder, symlinks=True, copy_function=os.link)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
