"""A tiny teacher and a tiny student, both real graphs."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from utterd.engine.training import checkpoint, dataset, export, plan
from utterd.engine.training.network import Acoustic, Prosody, Shape
from utterd.engine.voices import small_frames
from utterd.engine.voices.kokoro_symbols import SYMBOLS
from utterd.engine.voices.package import VoicePackage

torch.set_num_threads(1)  # two threads that wait for each other crawl on a busy machine

TINY = Shape(
    encoder=16,
    encoder_inner=24,
    encoder_blocks=2,
    prosody=20,
    prosody_inner=24,
    prosody_dilations=(1, 2),
    decoder=24,
    decoder_inner=32,
    decoder_blocks=3,
)


@pytest.fixture(scope="session")
def networks() -> export.Networks:
    torch.manual_seed(3)
    acoustic, prosody = Acoustic(TINY), Prosody(TINY)
    with torch.no_grad():
        # Loud, varied and voiced: a network of zeros would agree with anything.
        acoustic.decoder.head.weight.mul_(3)
        acoustic.decoder.head.bias[:512] = -2.5
        acoustic.decoder.head.bias[-64:] = -5
        prosody.head.bias[1:].view(-1, 3)[:, 1] = 0.5
    return export.Networks(acoustic.eval(), prosody.eval(), TINY)


@pytest.fixture(scope="session")
def package(networks: export.Networks, tmp_path_factory: pytest.TempPathFactory) -> VoicePackage:
    folder = tmp_path_factory.mktemp("voice") / "tiny"
    planned = plan.Plan(1, "zf_test", "0" * 64, SYMBOLS, [])
    said = [random_example(np.random.default_rng(seed)) for seed in range(4)]
    return export.write(
        folder, "tiny", networks, planned, recipe={"why": "a test", "pace": 1.0}, examples=said
    )


@pytest.fixture
def fitted(networks: export.Networks, tmp_path: Path) -> Path:
    folder = tmp_path / "fit"
    folder.mkdir()
    for name, network in (("acoustic", networks.acoustic), ("prosody", networks.prosody)):
        curve = [{"step": 1, "valid_total": 2.0}, {"step": 2, "valid_total": 1.0}]
        content = {"shape": networks.shape.to_json(), "step": 2, "curve": curve}
        checkpoint.save(folder / f"{name}-best.pt", content | {"network": network.state_dict()})
    return folder


def random_example(rng: np.random.Generator) -> dataset.Example:
    """An item of 12 tokens and 120 frames; nobody listens to its sound."""
    ends = np.sort(rng.integers(1, 120, 12))
    ends[-1] = 120
    f0, energy = rng.uniform(9, 400, 120), rng.uniform(0, 16, 120)
    frames = small_frames.frames(ends, f0, energy)
    tokens = rng.choice(sorted(SYMBOLS.values()), 12).astype(np.int16)
    audio = np.zeros(120 * small_frames.HOP, np.int16)
    return dataset.Example(0, tokens, ends, frames, f0, energy, audio)


@pytest.fixture(scope="session")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the teacher's: its model says a 200 Hz tone of 50 ms for every phoneme."""
    folder = tmp_path_factory.mktemp("teacher")
    (folder / "voices").mkdir()
    np.zeros((510, 256), np.float32).tofile(folder / "voices" / "zf_test.bin")
    vocabulary = plan.msgspec.json.encode({"vocab": SYMBOLS})
    (folder / "vocab.json").write_bytes(vocabulary)
    onnx.save(_tone(), folder / "model.onnx")
    return folder


def _tone() -> onnx.ModelProto:
    def constant(name: str, value: np.ndarray) -> onnx.TensorProto:
        return numpy_helper.from_array(value, name)

    node = helper.make_node
    f0, n0 = "/encoder/F0_proj/Conv_output_0", "/encoder/N_proj/Conv_output_0"
    graph = helper.make_graph(
        [
            node("Cast", ["tokens"], ["known"], to=TensorProto.FLOAT),
            node("Mul", ["known", "zero"], ["nothing"]),
            node("Add", ["nothing", "two"], ["/encoder/Clip_output_0"]),
            node("ReduceSum", ["/encoder/Clip_output_0"], ["units"], keepdims=0),
            node("Mul", ["units", "block"], ["length"]),
            node("Range", ["start", "length", "one"], ["time"]),
            node("Mul", ["time", "step"], ["phase"]),
            node("Sin", ["phase"], ["wave"]),
            node("Mul", ["wave", "loud"], ["audio"]),
            node("Mul", ["units", "double"], ["frames"]),
            node("Range", ["start", "frames", "one"], ["counted"]),
            node("Mul", ["counted", "zero"], ["flat"]),
            node("Add", ["flat", "pitch"], ["track"]),
            node("Add", ["flat", "two"], ["level"]),
            node("Unsqueeze", ["track", "axes"], [f0]),
            node("Unsqueeze", ["level", "axes"], [n0]),
        ],
        "tone",
        [
            helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, "n"]),
            helper.make_tensor_value_info("style", TensorProto.FLOAT, [1, 256]),
            helper.make_tensor_value_info("speed", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("audio", TensorProto.FLOAT, ["samples"]),
            helper.make_tensor_value_info("/encoder/Clip_output_0", TensorProto.FLOAT, [1, "n"]),
            helper.make_tensor_value_info(f0, TensorProto.FLOAT, [1, 1, "f"]),
            helper.make_tensor_value_info(n0, TensorProto.FLOAT, [1, 1, "f"]),
        ],
        [
            constant("zero", np.float32(0)),
            constant("two", np.float32(2)),
            constant("one", np.float32(1)),
            constant("start", np.float32(0)),
            constant("block", np.float32(600)),
            constant("double", np.float32(2)),
            constant("step", np.float32(2 * np.pi * 200 / 24000)),
            constant("loud", np.float32(0.3)),
            constant("pitch", np.float32(200)),
            constant("axes", np.array([0, 1], np.int64)),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model
