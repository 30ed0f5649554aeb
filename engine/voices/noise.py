"""Takes the dice out of a graph: the same text gives the same samples.

A VITS graph draws its noise anew at every run. Then no result can be cached, no utterance can be
taken up by another worker in its middle, and nothing heard can be compared with anything made.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE = 192 * 1024
"""Values of noise; longer tensors repeat them (after 1,024 frames of 192 channels)."""
SEED = 20240607


def freeze_noise(model: onnx.ModelProto) -> int:
    """Replace every `RandomNormalLike` by values from one table of normal noise.

    Returns:
        How many were replaced.
    """
    graph = model.graph
    dice = [node for node in graph.node if node.op_type == "RandomNormalLike"]
    if not dice:
        return 0
    table = np.random.default_rng(SEED).standard_normal(TABLE).astype(np.float32)
    constants: dict[str, NDArray[Any]] = {
        "noise/table": table,
        "noise/length": np.array(TABLE, np.int64),
        "noise/zero": np.array(0, np.int64),
        "noise/one": np.array(1, np.int64),
    }
    graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in constants.items()
    )
    for number, node in enumerate(dice):
        at = list(graph.node).index(node)
        graph.node.remove(node)
        for offset, made in enumerate(_lookup(node, f"noise/{number}")):
            graph.node.insert(at + offset, made)
    onnx.checker.check_model(model)
    return len(dice)


def _lookup(node: onnx.NodeProto, name: str) -> list[onnx.NodeProto]:
    """Nodes that give `node`'s output from the table: table[0, 1, ... mod its length]."""
    settings = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    if settings.get("dtype", TensorProto.FLOAT) != TensorProto.FLOAT:
        raise ValueError(f"{node.name} draws noise that is not float32")
    scale = float(settings.get("scale", 1.0))
    mean = float(settings.get("mean", 0.0))

    def make(kind: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:  # noqa: ANN401
        return helper.make_node(kind, inputs, [output], name=f"{output}/{kind}", **attributes)

    return [
        make("Shape", [node.input[0]], f"{name}/shape"),
        make("ReduceProd", [f"{name}/shape"], f"{name}/size", keepdims=0),
        make("Range", ["noise/zero", f"{name}/size", "noise/one"], f"{name}/range"),
        make("Mod", [f"{name}/range", "noise/length"], f"{name}/index"),
        make("Gather", ["noise/table", f"{name}/index"], f"{name}/flat"),
        make("Reshape", [f"{name}/flat", f"{name}/shape"], f"{name}/unit"),
        make("Constant", [], f"{name}/scale", value_float=scale),
        make("Mul", [f"{name}/unit", f"{name}/scale"], f"{name}/scaled"),
        make("Constant", [], f"{name}/mean", value_float=mean),
        make("Add", [f"{name}/scaled", f"{name}/mean"], node.output[0]),
    ]
