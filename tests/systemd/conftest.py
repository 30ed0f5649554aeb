"""The product installed once, for all tests of units."""

import shutil

import pytest

from tests.systemd import installed


@pytest.fixture(scope="package")
def staged(tmp_path_factory):
    """A folder that stands for `/` with utterd installed under its /usr/local."""
    destination = tmp_path_factory.mktemp("staged")
    done = installed.run("install", destination)
    assert done.returncode == 0, done.stderr
    yield destination
    shutil.rmtree(destination)
