"""Turns a dynamically quantised ONNX graph back into float32.

Integer operators are slow on processors without VNNI, and every one of them first measures its
input. What is computed here instead is the same product on the same (dequantised) weights:

    DynamicQuantizeLinear -> ConvInteger [-> Add bias] -> Cast -> Mul    becomes   Conv(x, w, b)
    DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul                becomes   MatMul(x, w)
    DynamicQuantizeLSTM                                                  becomes   LSTM

The bias of a ConvInteger reaches its Add as `Div(b, scale) -> Floor -> Cast(int32) -> Reshape`;
the float convolution takes `b` itself. Names of the results stay, so that inner tensors can still
be found. Needs the `onnx` package; runs when a voice is added, never when it speaks.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper


class GraphError(Exception):
    """The graph isn't built the way this module knows."""


def dequantise(model: onnx.ModelProto, progress: Callable[[float], None]) -> int:
    """Replace all integer convolutions, products and LSTMs of `model` in place.

    Args:
        model: a graph as ONNX Runtime's dynamic quantisation writes it.
        progress: called with the fraction done.

    Returns:
        How many operators were replaced.

    Raises:
        GraphError: an integer operator stands in a pattern that isn't known.
    """
    rewrite = _Rewrite(model.graph)
    quantised = [node for node in model.graph.node if node.op_type in _REPLACE]
    for index, node in enumerate(quantised):
        _REPLACE[node.op_type](rewrite, node)
        progress((index + 1) / len(quantised))
    rewrite.commit()
    prune(model)
    return len(quantised)


def prune(model: onnx.ModelProto) -> None:
    """Remove what no output of the graph needs: nodes, initializers and stale value infos."""
    graph = model.graph
    producer = {name: node for node in graph.node for name in node.output}
    needed: set[str] = set()
    waiting = [output.name for output in graph.output]
    while waiting:
        name = waiting.pop()
        if not name or name in needed:
            continue
        needed.add(name)
        if name in producer:
            waiting.extend(producer[name].input)
    _keep(graph.node, [node for node in graph.node if needed.intersection(node.output)])
    _keep(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in needed])
    del graph.value_info[:]


def expose(model: onnx.ModelProto, name: str, shape: Sequence[str | int]) -> None:
    """Make the inner float32 tensor `name` an output, after those that are there.

    Raises:
        GraphError: no node makes it.
    """
    if not any(name in node.output for node in model.graph.node):
        raise GraphError(f"the graph has no tensor {name}")
    if not any(output.name == name for output in model.graph.output):
        value = helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(shape))
        model.graph.output.append(value)


class _Rewrite:
    """New nodes for old ones, on one graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.producer = {name: node for node in graph.node for name in node.output}
        self.consumers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in graph.node:
            for name in node.input:
                self.consumers[name].append(node)
        self._weights: dict[tuple[str, ...], str] = {}
        self._replaced: dict[str, onnx.NodeProto] = {}

    def array(self, name: str) -> NDArray[np.float32]:
        """The values of an initializer, as float32."""
        if name not in self.initializers:
            raise GraphError(f"{name} should be a constant")
        return numpy_helper.to_array(self.initializers[name]).astype(np.float32)

    def only_consumer(self, name: str, op_type: str) -> onnx.NodeProto:
        """The one node that reads `name`, which must be of `op_type`."""
        nodes = self.consumers[name]
        if len(nodes) != 1 or nodes[0].op_type != op_type:
            found = ", ".join(node.op_type for node in nodes) or "nothing"
            raise GraphError(f"{name} should feed one {op_type}, not {found}")
        return nodes[0]

    def weight(self, key: tuple[str, ...], make: Callable[[], NDArray[np.float32]]) -> str:
        """Name of the float constant for `key`; shared weights stay shared."""
        if key not in self._weights:
            name = f"{key[0].removesuffix('_quantized')}_float"
            if name in self.initializers:
                name = f"{name}_{len(self._weights)}"
            self._weights[key] = name
            tensor = numpy_helper.from_array(np.ascontiguousarray(make()), name)
            self.initializers[name] = tensor
            self.graph.initializer.append(tensor)
        return self._weights[key]

    def replace(self, old: onnx.NodeProto, new: onnx.NodeProto) -> None:
        """Put `new` where `old` stood."""
        self._replaced[old.output[0]] = new

    def commit(self) -> None:
        """Write the replacements into the graph, in the order of the nodes they replace."""
        nodes = [self._replaced.get(node.output[0], node) for node in self.graph.node]
        _keep(self.graph.node, nodes)

    def float_input(self, node: onnx.NodeProto) -> str:
        """The float tensor that was quantised for the first input of `node`."""
        quantise = self.producer.get(node.input[0])
        if quantise is None or quantise.op_type != "DynamicQuantizeLinear":
            raise GraphError(f"the input of {node.name} isn't quantised dynamically")
        return str(quantise.input[0])

    def weight_scale(self, scaled: onnx.NodeProto, product: str) -> str:
        """Name of the weight's scale: `scaled` is product x (input scale x weight scale)."""
        scales = self.producer.get(_other(scaled, product))
        constants = [name for name in scales.input if name in self.initializers] if scales else []
        if len(constants) != 1:
            raise GraphError(f"the scale of {scaled.name} isn't a product with one constant")
        return str(constants[0])


def _conv(rewrite: _Rewrite, node: onnx.NodeProto) -> None:
    total = node.output[0]
    bias: list[str] = []
    if rewrite.consumers[total][0].op_type == "Add":
        add = rewrite.only_consumer(total, "Add")
        bias = [_conv_bias(rewrite, _other(add, total))]
        total = add.output[0]
    cast = rewrite.only_consumer(total, "Cast")
    scaled = rewrite.only_consumer(cast.output[0], "Mul")
    weight, zero = node.input[1], node.input[3]
    scale = rewrite.weight_scale(scaled, cast.output[0])

    def values() -> NDArray[np.float32]:
        filters = rewrite.array(weight)
        per_filter = (-1,) + (1,) * (filters.ndim - 1)
        return (filters - rewrite.array(zero).reshape(per_filter)) * rewrite.array(scale).reshape(
            per_filter
        )

    constant = rewrite.weight((weight, zero, scale), values)
    inputs = [rewrite.float_input(node), constant, *bias]
    new = helper.make_node("Conv", inputs, list(scaled.output), name=node.name)
    new.attribute.extend(node.attribute)
    rewrite.replace(scaled, new)


def _conv_bias(rewrite: _Rewrite, name: str) -> str:
    """The float bias behind `Div -> Floor -> Cast -> Reshape`, one value a filter."""
    for op_type in ("Reshape", "Cast", "Floor", "Div"):
        node = rewrite.producer.get(name)
        if node is None or node.op_type != op_type:
            raise GraphError(f"the bias {name} isn't made by {op_type}")
        name = node.input[0]
    if rewrite.array(name).ndim != 1:
        raise GraphError(f"the bias {name} should have one axis")
    return name


def _matmul(rewrite: _Rewrite, node: onnx.NodeProto) -> None:
    cast = rewrite.only_consumer(node.output[0], "Cast")
    scaled = rewrite.only_consumer(cast.output[0], "Mul")
    weight, zero = node.input[1], node.input[3]
    scale = rewrite.weight_scale(scaled, cast.output[0])

    def values() -> NDArray[np.float32]:
        return (rewrite.array(weight) - rewrite.array(zero)) * rewrite.array(scale)

    constant = rewrite.weight((weight, zero, scale), values)
    inputs = [rewrite.float_input(node), constant]
    rewrite.replace(scaled, helper.make_node("MatMul", inputs, scaled.output, name=node.name))


def _lstm(rewrite: _Rewrite, node: onnx.NodeProto) -> None:
    x, w, r, bias, lengths, h0, c0, peephole, w_scale, w_zero, r_scale, r_zero = node.input

    def constant(weight: str, scale: str, zero: str) -> str:
        def values() -> NDArray[np.float32]:
            whole = rewrite.array(weight)  # (directions, inputs, 4 x hidden)
            factor, offset = (
                part.reshape(part.shape[0], 1, -1)
                for part in (rewrite.array(scale), rewrite.array(zero))
            )
            return ((whole - offset) * factor).transpose(0, 2, 1)  # (directions, 4 x hidden, in)

        return rewrite.weight((weight, zero, scale), values)

    weights = [constant(w, w_scale, w_zero), constant(r, r_scale, r_zero)]
    inputs = [x, *weights, bias, lengths, h0, c0, peephole]
    new = helper.make_node("LSTM", inputs, list(node.output), name=node.name)
    new.attribute.extend(node.attribute)
    rewrite.replace(node, new)


_REPLACE: dict[str, Callable[[_Rewrite, onnx.NodeProto], None]] = {
    "ConvInteger": _conv,
    "MatMulInteger": _matmul,
    "DynamicQuantizeLSTM": _lstm,
}


def _other(node: onnx.NodeProto, name: str) -> str:
    """The input of a two-input node that isn't `name`."""
    return next(str(candidate) for candidate in node.input if candidate != name)


def _keep(field: Any, items: list[Any]) -> None:  # noqa: ANN401 - protobuf's own type is private
    """Make a repeated protobuf field hold exactly `items`."""
    copies = list(items)
    del field[:]
    field.extend(copies)
