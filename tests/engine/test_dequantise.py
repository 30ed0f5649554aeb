"""A graph that ONNX Runtime quantised, turned back, computes with its dequantised weights."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from utterd.engine.voices.dequantise import GraphError, dequantise, expose, prune

RANDOM = np.random.default_rng(5)


def weights(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def model_of(nodes, constants, inputs, outputs):
    value = lambda name, shape: helper.make_tensor_value_info(  # noqa: E731
        name, TensorProto.FLOAT, shape
    )
    graph = helper.make_graph(
        nodes,
        "g",
        [value(name, shape) for name, shape in inputs],
        [value(name, shape) for name, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def conv(with_bias):
    constants = {"w": weights(6, 4, 3), "b": weights(6)}
    inputs = ["x", "w", "b"] if with_bias else ["x", "w"]
    node = helper.make_node(
        "Conv", inputs, ["y"], name="c", dilations=[2], pads=[2, 2], strides=[2]
    )
    if not with_bias:
        del constants["b"]
    return model_of([node], constants, [("x", [1, 4, "t"])], [("y", [1, 6, "u"])]), (1, 4, 40)


def products():
    """Two products that share their weights, as ALBERT's layers do, and a bias behind each."""
    constants = {"w": weights(8, 8), "b": weights(8)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="one"),
        helper.make_node("Add", ["m", "b"], ["a"], name="add"),
        helper.make_node("Relu", ["a"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "w"], ["y"], name="two"),
    ]
    return model_of(nodes, constants, [("x", [1, "t", 8])], [("y", [1, "t", 8])]), (1, 12, 8)


def lstm():
    constants = {"w": weights(2, 20, 6), "r": weights(2, 20, 5), "b": weights(2, 40)}
    node = helper.make_node(
        "LSTM", ["x", "w", "r", "b"], ["y"], name="l", direction="bidirectional", hidden_size=5
    )
    shapes = [("x", ["t", 1, 6])], [("y", ["t", 2, 1, 5])]
    return model_of([node], constants, *shapes), (9, 1, 6)


CASES = {
    "conv with bias": lambda: conv(with_bias=True),
    "conv without bias": lambda: conv(with_bias=False),
    "products": products,
    "lstm": lstm,
}


def run(model, x):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_it_computes_with_the_dequantised_weights(case, per_channel, tmp_path):
    model, shape = CASES[case]()
    path = tmp_path / "q.onnx"
    quantize_dynamic(
        model, path, per_channel=per_channel, weight_type=QuantType.QInt8,
        op_types_to_quantize=["Conv", "MatMul", "LSTM"],
        extra_options={"WeightSymmetric": True},
    )  # fmt: skip
    quantised = onnx.load(path)
    assert any("Integer" in n.op_type or "Quantize" in n.op_type for n in quantised.graph.node)
    x = weights(*shape)
    as_quantised = run(quantised, x)
    fractions = []
    replaced = dequantise(quantised, fractions.append)
    assert replaced == sum(n.op_type in ("Conv", "MatMul", "LSTM") for n in model.graph.node)
    assert fractions[-1] == 1.0
    left = {n.op_type for n in quantised.graph.node}
    assert left <= {"Conv", "MatMul", "LSTM", "Add", "Relu", "Reshape"}
    onnx.checker.check_model(quantised)
    result = run(quantised, x)
    # Within what rounding the input to 8 bits does to the integer graph ...
    assert np.abs(result - as_quantised).max() < 0.05 * np.abs(as_quantised).max()
    # ... and closer to the true product than it, save for the weights' own rounding.
    for tensor in model.graph.initializer:
        if tensor.name in ("w", "r"):
            array = numpy_helper.to_array(tensor)
            assert np.abs(_find(quantised, array) - array).max() <= np.abs(array).max() / 127


def _find(model, like):
    """The weight in `model` that is `like`, whatever its name now."""
    arrays = [numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    same = [a for a in arrays if a.shape == like.shape and a.dtype == np.float32]
    return min(same, key=lambda a: np.abs(a - like).max())


def test_shared_weights_stay_shared(tmp_path):
    model, _ = products()
    quantize_dynamic(model, tmp_path / "q.onnx", weight_type=QuantType.QInt8)
    quantised = onnx.load(tmp_path / "q.onnx")
    dequantise(quantised, lambda fraction: None)
    used = {n.input[1] for n in quantised.graph.node if n.op_type == "MatMul"}
    assert len(used) == 1


def test_results_keep_their_names(tmp_path):
    model, _ = products()
    quantize_dynamic(model, tmp_path / "q.onnx", weight_type=QuantType.QInt8)
    quantised = onnx.load(tmp_path / "q.onnx")
    dequantise(quantised, lambda fraction: None)
    expose(quantised, "m", [1, "t", 8])
    session = onnxruntime.InferenceSession(
        quantised.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert [value.name for value in session.get_outputs()] == ["y", "m"]


def test_an_unknown_pattern_is_refused():
    constants = {"w": np.zeros((4, 4), np.int8)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"], name="i"),
        helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
    ]
    model = model_of(nodes, constants, [("x", [1, 4])], [("y", [1, 4])])
    with pytest.raises(GraphError):
        dequantise(model, lambda fraction: None)


def test_an_inner_tensor_that_is_not_there():
    model, _ = products()
    with pytest.raises(GraphError, match="no tensor nowhere"):
        expose(model, "nowhere", [1])


def test_pruning_leaves_what_outputs_need():
    model, shape = products()
    model.graph.node.append(helper.make_node("MatMul", ["x", "dead"], ["unused"]))
    model.graph.initializer.append(numpy_helper.from_array(weights(8, 8), "dead"))
    x = weights(*shape)
    expected = run(CASES["products"]()[0], x).shape
    prune(model)
    assert [n.op_type for n in model.graph.node] == ["MatMul", "Add", "Relu", "MatMul"]
    assert {t.name for t in model.graph.initializer} == {"w", "b"}
    assert run(model, x).shape == expected
