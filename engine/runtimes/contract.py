"""What a voice asks of a runtime: load a graph, run it, leave it in the middle."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

Arrays = list[NDArray[Any]]
Abandon = Callable[[], bool]


class RuntimeFailedError(Exception):
    """A graph can't be loaded or run; one line that says which and why."""


class AbandonedError(Exception):
    """Raised where `abandon()` turned true in the middle of the work."""


class Graph(Protocol):
    """A loaded graph. Several threads may run it at once, but one at a time with `abandon`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def busy_ns(self) -> int:
        """Time that the calling thread spent in `run` since it was loaded."""
        ...

    def run(
        self,
        outputs: Sequence[str],
        feeds: Mapping[str, NDArray[Any]],
        abandon: Abandon | None = None,
    ) -> Arrays:
        """Compute `outputs`, in their order.

        Args:
            outputs: names of the tensors wanted.
            feeds: an array an input, of the graph's own types and shapes.
            abandon: polled every few milliseconds from another thread while the graph runs. Leave
                it out for runs that end in a few milliseconds by themselves.

        Raises:
            AbandonedError: `abandon()` turned true; the run was left within one operator.
            RuntimeFailedError: the runtime refused.
        """
        ...

    def close(self) -> None:
        """Free it, its threads too."""
        ...


class Runtime(Protocol):
    """A library that runs graphs on a device."""

    name: str
    """What really runs, as `Ready.runtime` reports it."""

    def load(self, path: Path, threads: int, *, optimise: bool = True) -> Graph:
        """Load an ONNX graph.

        Args:
            path: the file.
            threads: how many threads one run may use; at least 1.
            optimise: let the runtime rewrite the graph; some gain nothing by it but a longer load.

        Raises:
            RuntimeFailedError: the file is no graph that this runtime can run.
        """
        ...
