"""The front end's data files, read as resources of the package."""

from importlib import resources


def read_bytes(name: str) -> bytes:
    """Return a file of `data/`."""
    return (resources.files("utterd.engine.frontend") / "data" / name).read_bytes()


def read_lines(name: str) -> list[str]:
    """Return the lines of a UTF-8 file of `data/`, without comments and empty ones."""
    lines = read_bytes(name).decode("utf-8").split("\n")
    return [line for line in lines if line and not line.startswith("#")]
