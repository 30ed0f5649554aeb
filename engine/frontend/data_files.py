"""The front end's data files, read as resources of the package."""

import io
from collections.abc import Iterator
from importlib import resources


def read_bytes(name: str) -> bytes:
    """Return a file of `data/`."""
    return (resources.files("utterd.engine.frontend") / "data" / name).read_bytes()


def read_lines(name: str) -> Iterator[str]:
    """Yield the lines of a UTF-8 file of `data/`, without comments and empty ones.

    One by one: the pieces of a list of fifty thousand would stay in the heap among what is kept.
    """
    for line in io.StringIO(read_bytes(name).decode("utf-8")):
        stripped = line.rstrip("\n")
        if stripped and not stripped.startswith("#"):
            yield stripped
