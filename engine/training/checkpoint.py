"""Checkpoints: all that a fit needs to go on as if it had never stopped."""

import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import nn

from utterd.engine.training.files import write_whole
from utterd.engine.training.network import Shape


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint; a kill leaves the old one or the new one."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_whole(path, buffer.getvalue())


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint: tensors and plain values, never code."""
    content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return content


def fill(network: nn.Module, content: dict[str, Any], path: Path, *, part: bool = False) -> None:
    """Give a network the weights of a checkpoint.

    Args:
        network: of the sizes in `content`.
        content: as `load` read it.
        path: from where.
        part: the network may have more than the checkpoint.

    Raises:
        ValueError: they are of a network as an earlier release had it.
    """
    try:
        network.load_state_dict(content["network"], strict=not part)
    except RuntimeError:
        raise ValueError(
            f"{path} holds a network of an earlier release: choose another folder, and fit anew"
        ) from None


def shape(content: dict[str, Any]) -> Shape:
    """Return the sizes of the network of a checkpoint."""
    return msgspec.convert(content["shape"], Shape)


def random_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of all random numbers a fit draws."""
    return {"torch": torch.get_rng_state(), "numpy": rng.bit_generator.state}


def restore_random_state(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Set what `random_state` returned."""
    torch.set_rng_state(state["torch"])
    rng.bit_generator.state = state["numpy"]
