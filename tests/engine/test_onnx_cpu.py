"""The runtime: what it refuses, and how fast it leaves."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from utterd.engine.runtimes.contract import AbandonedError, RuntimeFailedError
from utterd.engine.runtimes.onnx_cpu import OnnxCpu


@pytest.fixture
def slow_graph(tmp_path):
    """400 products of 300 x 300: one run takes long, one product is short."""
    nodes = [helper.make_node("MatMul", [f"x{i}", "w"], [f"x{i + 1}"]) for i in range(400)]
    value = lambda name: helper.make_tensor_value_info(  # noqa: E731
        name, TensorProto.FLOAT, [300, 300]
    )
    weight = numpy_helper.from_array(np.eye(300, dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "g", [value("x0")], [value("x400")], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path / "slow.onnx"
    path.write_bytes(model.SerializeToString())
    loaded = OnnxCpu().load(path, 1)
    yield loaded
    loaded.close()


ONES = {"x0": np.ones((300, 300), np.float32)}


def test_it_computes(slow_graph):
    (result,) = slow_graph.run(["x400"], ONES, lambda: False)
    np.testing.assert_array_equal(result, ONES["x0"])
    assert slow_graph.inputs == ("x0",)
    assert slow_graph.outputs == ("x400",)
    assert slow_graph.busy_ns > 0


def test_a_run_is_left_within_an_operator(slow_graph):
    slow_graph.run(["x400"], ONES)
    whole_ns = slow_graph.busy_ns
    fence = threading.Event()
    timer = threading.Timer(0.25 * whole_ns / 1e9, fence.set)
    timer.start()
    began = time.monotonic_ns()
    with pytest.raises(AbandonedError):
        slow_graph.run(["x400"], ONES, fence.is_set)
    timer.join()
    assert time.monotonic_ns() - began < 0.8 * whole_ns
    # ... and runs again.
    assert slow_graph.run(["x400"], ONES, lambda: False)


def test_one_that_is_dropped_before_it_begins(slow_graph):
    with pytest.raises(AbandonedError):
        slow_graph.run(["x400"], ONES, lambda: True)
    assert slow_graph.busy_ns == 0


@pytest.mark.parametrize("content", [b"", b"no graph", b"\x08\x09" * 100])
def test_what_is_no_graph_is_refused(tmp_path, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(RuntimeFailedError, match=r"broken\.onnx can't be loaded") as error:
        OnnxCpu().load(path, 1)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(RuntimeFailedError, match="can't be loaded"):
        OnnxCpu().load(tmp_path / "none.onnx", 1)


def test_wrong_input_is_refused_and_the_next_run_works(slow_graph):
    with pytest.raises(RuntimeFailedError, match=r"slow\.onnx failed"):
        slow_graph.run(["x400"], {"x0": np.ones((3, 3), np.float32)}, lambda: False)
    with pytest.raises(RuntimeFailedError, match=r"slow\.onnx failed"):
        slow_graph.run(["nowhere"], ONES, lambda: False)
    assert slow_graph.run(["x400"], ONES, lambda: False)


def test_its_threads_end_with_it(slow_graph, tmp_path):
    before = set(threading.enumerate())
    path = tmp_path / "slow.onnx"
    others = [OnnxCpu().load(path, 1) for _ in range(3)]
    its_own = set(threading.enumerate()) - before
    assert len(its_own) == 3
    for other in others:
        other.close()
    assert not its_own & set(threading.enumerate())


def test_it_rests_when_it_has_nothing_to_do(slow_graph):
    """No spinning: between runs the process takes almost no processor time."""
    slow_graph.run(["x400"], ONES, lambda: False)
    began = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - began < 0.05


def test_several_threads_run_it_each_with_a_session_and_a_time_of_its_own(slow_graph, tmp_path):
    other = tmp_path / "other.onnx"
    other.write_bytes(b"as when its voice is replaced while it is in use")
    other.replace(tmp_path / "slow.onnx")
    slow_graph.run(["x400"], ONES)
    ours = slow_graph.busy_ns
    results, times = {}, {}

    def run(number):
        assert slow_graph.busy_ns == 0
        (results[number],) = slow_graph.run(["x400"], {"x0": ONES["x0"] * number})
        times[number] = slow_graph.busy_ns

    threads = [threading.Thread(target=run, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(1, 4):
        np.testing.assert_array_equal(results[number], ONES["x0"] * number)
        assert times[number] > 0
    assert slow_graph.busy_ns == ours


def test_a_run_is_beside_others_and_nothing_else_is(slow_graph, tmp_path):
    log = []

    @contextmanager
    def beside():
        log.append("begins")
        yield
        log.append("ends")

    graph = OnnxCpu(beside).load(tmp_path / "slow.onnx", 1)
    assert log == []
    graph.run(["x400"], ONES)
    assert log == ["begins", "ends"]
    with pytest.raises(AbandonedError):
        graph.run(["x400"], ONES, lambda: True)
    assert log == ["begins", "ends"]
    graph.close()
