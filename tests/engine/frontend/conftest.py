from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from utterd.engine.frontend.contract import Syllable
from utterd.engine.frontend.reader import Reader

CASES = Path(__file__).parent / "cases"


@pytest.fixture(scope="session")
def reader() -> Reader:
    return Reader()


@pytest.fixture(scope="session")
def syllables(reader: Reader) -> Callable[[str], list[Syllable]]:
    return lambda text: [s for g in reader.analyse(text).segments for s in g.syllables]


def cases(name: str) -> Iterator[list[str]]:
    """Rows of a case file: fields between tabs, without comments and empty lines."""
    for line in (CASES / name).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")
