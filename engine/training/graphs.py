"""The network as two ONNX graphs: static operators, no control flow, perceptrons in 8 bits."""

import warnings
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from utterd.engine.training.files import write_whole
from utterd.engine.training.network import FEATURES, KERNEL, Acoustic, Prosody, Shape
from utterd.engine.training.quantise import Ranges, quantise
from utterd.engine.training.spectra import BINS, SPAN, MatrixTransform
from utterd.engine.voices import small_frames

OPSET = 20


class Encode(nn.Module):
    """`encode.onnx`: both looks at the phonemes at once; durations are multiplied by `pace`."""

    def __init__(self, acoustic: Acoustic, prosody: Prosody, pace: float) -> None:
        super().__init__()
        self.pace = pace
        self.encoder = acoustic.encoder
        self.prosody = prosody

    def forward(self, tokens: Tensor, position: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map ids (1, P) and where they stand, (1, P, POSITION), to what the decoder is told.

        That is hidden (1, P, C), durations (1, P) and contour (1, P, K, 3).
        """
        durations, contour = self.prosody(tokens, position)
        return self.encoder(tokens, position), durations * self.pace, contour


class Decode(nn.Module):
    """`decode.onnx`: the decoder, its transform by matrices, its states as flat arguments."""

    def __init__(self, acoustic: Acoustic, shape: Shape) -> None:
        super().__init__()
        self.decoder = Acoustic(shape, MatrixTransform()).decoder
        self.decoder.load_state_dict(acoustic.decoder.state_dict())

    def forward(
        self, hidden: Tensor, features: Tensor, source: Tensor, noise: Tensor, overlap: Tensor,
        *states: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """See `Decoder.forward`."""
        samples, overlap, kept = self.decoder(
            hidden, features, source, noise, overlap, list(states)
        )
        return (samples, overlap, *kept)


def write_encode(
    path: Path, acoustic: Acoustic, prosody: Prosody, seen: Ranges, *, pace: float = 1.0
) -> None:
    """Write `encode.onnx`."""
    tokens = torch.tensor([[0, 43, 44, 45, 46, 0]])
    position = torch.from_numpy(small_frames.position(tokens.shape[1]))[None]
    _write(
        path,
        Encode(acoustic, prosody, pace),
        (tokens, position),
        {"tokens": {1: "phonemes"}, "position": {1: "phonemes"}},
        outputs=["hidden", "durations", "contour"],
        seen=seen,
    )


def write_decode(path: Path, acoustic: Acoustic, shape: Shape, seen: Ranges) -> None:
    """Write `decode.onnx`: inputs hidden, features, source, noise, overlap, state_0, ..."""
    blocks, reach = 8, 2 * (KERNEL // 2)
    states = [f"state_{i}" for i in range(shape.decoder_blocks)]
    arguments = (
        torch.zeros(1, blocks, shape.encoder),
        torch.zeros(1, blocks, FEATURES),
        torch.zeros(1, blocks + SPAN - 1, 4),
        torch.zeros(1, blocks, 2, BINS),
        torch.zeros(1, SPAN - 1, SPAN * 300),
        *(torch.zeros(1, reach, shape.decoder) for _ in states),
    )
    axes = {
        "hidden": {1: "frames"},
        "features": {1: "frames"},
        "source": {1: "blocks"},
        "noise": {1: "spectra"},
        "overlap": {1: "overlapping"},
        **{name: {1: f"kept_{name}"} for name in states},
    }
    outputs = ["samples", "overlap_next", *(f"{name}_next" for name in states)]
    _write(path, Decode(acoustic, shape), arguments, axes, outputs=outputs, seen=seen)


def _write(
    path: Path,
    module: nn.Module,
    arguments: tuple[Tensor, ...],
    axes: dict[str, dict[int, str]],
    *,
    outputs: list[str],
    seen: Ranges,
) -> None:
    temporary = path.with_suffix(".whole")
    with warnings.catch_warnings():
        # The exporter by tracing is the one that keeps these names and plain operators.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            arguments,
            str(temporary),
            input_names=list(axes),
            output_names=outputs,
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    model = onnx.load(str(temporary))
    temporary.unlink()
    expected = {layer for layer in seen if hasattr(module, layer.partition(".")[0])}
    if missing := expected - quantise(model, seen):
        raise RuntimeError(f"the graph names these layers otherwise: {', '.join(sorted(missing))}")
    onnx.checker.check_model(model, full_check=True)
    write_whole(path, model.SerializeToString())
