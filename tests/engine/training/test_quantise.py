"""Products in 8 bits, with ranges that are fixed."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.engine.training.conftest import random_example
from utterd.engine.training.export import Networks
from utterd.engine.training.graphs import write_encode
from utterd.engine.training.quantise import quantise, ranges
from utterd.engine.voices import small_frames
from utterd.engine.voices.package import VoicePackage


def product(weight: np.ndarray) -> onnx.ModelProto:
    """A graph of one layer, named as the exporter names them."""
    rows, columns = weight.shape
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="/decoder/blocks.0/up/MatMul")],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", rows])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", columns])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"x": x})[0]


@pytest.fixture
def weight() -> np.ndarray:
    columns = 10.0 ** np.arange(-3, 3)  # each column has a scale of its own
    return (np.random.default_rng(1).standard_normal((64, 6)) * columns).astype(np.float32)


def test_a_product_is_near_what_it_was(weight: np.ndarray) -> None:
    x = np.random.default_rng(2).uniform(-1, 3, (50, 64)).astype(np.float32)
    model = product(weight)
    quantise(model, {"decoder.blocks.0.up": (-1.0, 3.0)})
    error = np.abs(run(model, x) - x @ weight).std(0) / (x @ weight).std(0)
    assert error.max() < 0.03
    stored = {t.data_type for t in model.graph.initializer if list(t.dims) == [64, 6]}
    assert stored == {TensorProto.INT8}


def test_a_row_is_the_same_whatever_stands_beside_it(weight: np.ndarray) -> None:
    x = np.random.default_rng(3).uniform(-1, 3, (50, 64)).astype(np.float32)
    x[49] *= 100
    model = product(weight)
    quantise(model, {"decoder.blocks.0.up": (-1.0, 3.0)})
    whole = run(model, x)
    np.testing.assert_array_equal(np.concatenate([run(model, x[:7]), run(model, x[7:])]), whole)


def test_what_lies_beyond_the_range_is_taken_for_its_end(weight: np.ndarray) -> None:
    model = product(weight)
    quantise(model, {"decoder.blocks.0.up": (-1.0, 3.0)})
    far, end = np.full((1, 64), 30, np.float32), np.full((1, 64), 3, np.float32)
    np.testing.assert_array_equal(run(model, far), run(model, end))


def test_other_layers_stay_as_they_are(weight: np.ndarray) -> None:
    model, before = product(weight), product(weight)
    quantise(model, {"decoder.blocks.1.up": (-1.0, 3.0)})
    assert model == before


def test_ranges_hold_what_every_example_needs(networks: Networks) -> None:
    examples = [random_example(np.random.default_rng(seed)) for seed in (1, 2)]
    parts = [networks.acoustic, networks.prosody, networks.shape]
    one, other, both = (ranges(*parts, some) for some in (examples[:1], examples[1:], examples))
    for layer, (low, high) in both.items():
        assert low == pytest.approx(min(one[layer][0], other[layer][0]), abs=1e-5)
        assert high == pytest.approx(max(one[layer][1], other[layer][1]), abs=1e-5)


def test_the_pace_is_a_factor_on_durations(networks: Networks, tmp_path: Path) -> None:
    said = []
    for pace in (1.0, 1.5):
        path = tmp_path / f"{pace}.onnx"
        write_encode(path, networks.acoustic, networks.prosody, {}, pace=pace)
        tokens = np.array([[0, 43, 44, 45, 0]], np.int64)
        position = small_frames.position(5)[None]
        feeds = {"tokens": tokens, "position": position, "wanted": np.array(5)}
        said.append(onnxruntime.InferenceSession(path).run(["durations"], feeds)[0])
    np.testing.assert_allclose(said[1], 1.5 * said[0], rtol=1e-5)
    assert said[0].min() > 0


def test_a_layer_that_the_graph_names_otherwise_is_an_error(
    networks: Networks, tmp_path: Path
) -> None:
    seen = {"encoder.blocks.7.up": (-1.0, 1.0)}
    with pytest.raises(RuntimeError, match=r"encoder\.blocks\.7\.up"):
        write_encode(tmp_path / "encode.onnx", networks.acoustic, networks.prosody, seen)


def test_all_but_the_head_of_prosody_is_put_in_8_bits(
    networks: Networks, package: VoicePackage
) -> None:
    seen = ranges(
        networks.acoustic,
        networks.prosody,
        networks.shape,
        [random_example(np.random.default_rng())],
    )
    assert all(low <= 0 <= high and low < high for low, high in seen.values())
    layers = set()
    for name in ("encode.onnx", "decode.onnx"):
        graph = onnx.load(package.path(name)).graph
        layers |= {t.name.removesuffix(".weight") for t in graph.initializer if t.data_type == 3}
    assert {name for name in layers if not name.endswith("_zero")} == set(seen)
    assert "prosody.head" not in seen
