"""The network as two ONNX graphs: static operators, no control flow, perceptrons in 8 bits."""

import warnings
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from utterd.engine.training.files import write_whole
from utterd.engine.training.network import (
    FEATURES,
    KERNEL,
    Acoustic,
    Block,
    Phonemes,
    Prosody,
    Shape,
)
from utterd.engine.training.quantise import Ranges, quantise
from utterd.engine.training.spectra import BINS, SPAN, MatrixTransform
from utterd.engine.voices import small_frames

OPSET = 20


class _Block(nn.Module):
    """A `Block` in the operators that runtimes are fastest at.

    Their depthwise convolutions are made for images, and are six times as fast there.

    Args:
        block: taught.
        pad: zeros at either end, as many as it reaches or none.
    """

    def __init__(self, block: Block, pad: int) -> None:
        super().__init__()
        self.cut = block.reach - pad
        mix, down = block.mix, block.down
        channels = mix.in_channels
        dilation = (1, mix.dilation[0])
        self.mix = nn.Conv2d(
            channels, channels, (1, KERNEL), 1, (0, pad), dilation, groups=channels
        )
        self.mix.load_state_dict({"weight": mix.weight[:, :, None], "bias": mix.bias})
        self.norm = block.norm
        self.up = block.up
        self.down = nn.Linear(down.in_features, channels)
        weight, bias = down.weight * block.gain[:, None], down.bias * block.gain
        self.down.load_state_dict({"weight": weight, "bias": bias})

    def forward(self, x: Tensor, wanted: Tensor | None = None) -> Tensor:
        """Map (1, T, C) to what the block makes of it, or of its first `wanted` rows."""
        mixed = self.mix(x[:, None].permute(0, 3, 1, 2)).permute(0, 2, 3, 1).squeeze(1)
        if self.cut:
            x = x[:, self.cut : -self.cut]
        if wanted is not None:
            x, mixed = x[:, :wanted], mixed[:, :wanted]
        out: Tensor = x + self.down(nn.functional.gelu(self.up(self.norm(mixed))))
        return out


class _Phonemes(nn.Module):
    """`Phonemes` of one segment, of which the first `wanted` are wanted.

    Each block looks at no more than what those hang on. An end behind the last phoneme is the last.
    """

    def __init__(self, phonemes: Phonemes) -> None:
        super().__init__()
        self.embed, self.position, self.norm = phonemes.embed, phonemes.position, phonemes.norm
        blocks = [block for block in phonemes.blocks if isinstance(block, Block)]
        self.blocks = nn.ModuleList(_Block(block, block.reach) for block in blocks)
        self.reaches = [block.reach for block in blocks]

    def forward(self, tokens: Tensor, position: Tensor, wanted: Tensor) -> Tensor:
        """Map ids (1, P) to (1, wanted, C)."""
        end = wanted + sum(self.reaches)
        x = self.embed(tokens[:, :end]) + self.position(position[:, :end])
        for number, block in enumerate(self.blocks, start=1):
            x = block(x, wanted + sum(self.reaches[number:]))
        normed: Tensor = self.norm(x)
        return normed


class _Prosody(nn.Module):
    """`Prosody`, likewise."""

    def __init__(self, prosody: Prosody) -> None:
        super().__init__()
        self.phonemes = _Phonemes(prosody.phonemes)
        self.head = prosody.head

    def forward(self, tokens: Tensor, position: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """See `Prosody.read`."""
        return Prosody.read(self.head(self.phonemes(tokens, position, wanted)))


class Encode(nn.Module):
    """`encode.onnx`: both looks at the phonemes at once; durations are multiplied by `pace`."""

    def __init__(self, acoustic: Acoustic, prosody: Prosody, pace: float) -> None:
        super().__init__()
        self.pace = pace
        self.encoder = _Phonemes(acoustic.encoder)
        self.prosody = _Prosody(prosody)

    def forward(
        self, tokens: Tensor, position: Tensor, wanted: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Map ids (1, P) and where they stand, (1, P, POSITION), to what the decoder is told.

        Of the first W = `wanted` that is hidden (1, W, C), durations (1, W), contour (1, W, K, 3).
        """
        durations, contour = self.prosody(tokens, position, wanted)
        return self.encoder(tokens, position, wanted), durations * self.pace, contour


class Decode(nn.Module):
    """`decode.onnx`: the decoder, its transform by matrices, its states as flat arguments."""

    def __init__(self, acoustic: Acoustic, shape: Shape) -> None:
        super().__init__()
        self.decoder = Acoustic(shape, MatrixTransform()).decoder
        self.decoder.load_state_dict(acoustic.decoder.state_dict())
        blocks = [block for block in self.decoder.blocks if isinstance(block, Block)]
        self.decoder.blocks = nn.ModuleList(_Block(block, 0) for block in blocks)

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
        (tokens, position, torch.tensor(4)),
        {"tokens": {1: "phonemes"}, "position": {1: "phonemes"}, "wanted": {}},
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
