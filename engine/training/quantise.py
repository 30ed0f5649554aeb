"""Perceptrons of the graphs in 8 bits, with ranges that are fixed when a voice is exported.

Ranges measured at each run, as ONNX Runtime's own tool for it would have them, hang on which frames
share a chunk, and chunks would no longer equal the whole. With fixed ones a product of integers is
the same number whatever stands beside it. Weights have 7 bits, one scale a column: processors
without VNNI add two products of 8 bits in 16, and 8 x 8 bits do not always fit there.

Written as QuantizeLinear and DequantizeLinear around a MatMul: runtimes fuse these, and who has a
faster float can take them out.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from torch import Tensor, nn

from utterd.engine.training import dataset
from utterd.engine.training.dataset import Example
from utterd.engine.training.network import Acoustic, Prosody, Shape
from utterd.engine.training.tasks import speak

Ranges = dict[str, tuple[float, float]]
"""Least and greatest input of each layer, 0 among them, by its name in the graphs."""

_WEIGHT_TOP = 63
_INPUT_TOP = 255
_FLOATS = ("prosody.head", ".position")
"""Few numbers, and what they say is how long and how high."""


def ranges(
    acoustic: Acoustic, prosody: Prosody, shape: Shape, examples: Sequence[Example]
) -> Ranges:
    """See what goes into each linear layer while the networks say `examples`."""
    seen: Ranges = {}
    layers = dict(acoustic.named_modules())
    layers |= {f"prosody.{name}": layer for name, layer in prosody.named_modules()}
    hooks = [
        layer.register_forward_pre_hook(_watch(seen, name))
        for name, layer in layers.items()
        if isinstance(layer, nn.Linear) and not name.endswith(_FLOATS)
    ]
    device = torch.device("cpu")
    try:
        with torch.no_grad():
            for example in examples:
                batch = dataset.acoustic([example], [0], example.length, shape.halo)
                speak(acoustic, batch, device)
                prosody(batch.tokens, batch.position)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def quantise(model: onnx.ModelProto, seen: Ranges) -> set[str]:
    """Put the products of `model` with the layers in `seen` into 8 bits, in place.

    Returns:
        The layers that were found in it.
    """
    found = set()
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        layer = node.name.removeprefix("/").removesuffix("/MatMul").replace("/", ".")
        if node.op_type == "MatMul" and layer in seen:
            found.add(layer)
            weight = weights.pop(node.input[1])
            tensors, before = _integers(layer, node, numpy_helper.to_array(weight), seen[layer])
            weights |= {tensor.name: tensor for tensor in tensors}
            nodes += before
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    del model.graph.initializer[:]
    model.graph.initializer.extend(weights.values())
    return found


def _integers(
    layer: str, node: onnx.NodeProto, weight: NDArray[np.float32], seen: tuple[float, float]
) -> tuple[list[onnx.TensorProto], list[onnx.NodeProto]]:
    """Lead both inputs of a product through integers; returns what that needs in the graph."""
    low, high = seen
    scale = np.float32((high - low) / _INPUT_TOP or 1.0)
    zero = np.uint8(round(-low / float(scale)))
    scales = (np.abs(weight).max(0) / _WEIGHT_TOP + np.float32(1e-12)).astype(np.float32)
    integers = np.rint(weight / scales).astype(np.int8)
    values = {
        "scale": np.asarray(scale),
        "zero": np.asarray(zero),
        "weight": integers,
        "weight_scale": scales,
        "weight_zero": np.zeros(len(scales), np.int8),
    }
    names = {key: f"{layer}.{key}" for key in (*values, "in", "float_in", "float_weight")}
    tensors = [numpy_helper.from_array(value, names[key]) for key, value in values.items()]
    before = [
        helper.make_node(
            "QuantizeLinear", [node.input[0], names["scale"], names["zero"]], [names["in"]]
        ),
        helper.make_node(
            "DequantizeLinear", [names["in"], names["scale"], names["zero"]], [names["float_in"]]
        ),
        helper.make_node(
            "DequantizeLinear",
            [names["weight"], names["weight_scale"], names["weight_zero"]],
            [names["float_weight"]],
            axis=1,
        ),
    ]
    node.input[0], node.input[1] = names["float_in"], names["float_weight"]
    return tensors, before


def _watch(seen: Ranges, name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
    """Return a hook that widens a layer's range by what goes in."""

    def widen(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        del layer
        low, high = seen.get(name, (0.0, 0.0))
        seen[name] = min(low, float(inputs[0].min())), max(high, float(inputs[0].max()))

    return widen
