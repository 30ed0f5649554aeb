"""A report that a person can open: figures, curves, pictures and sound."""

import html
import json
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from numpy.typing import NDArray

from utterd.engine.training import measures
from utterd.engine.training.files import write_whole
from utterd.engine.training.student import Spoken
from utterd.engine.voices.small_frames import SAMPLE_RATE

if TYPE_CHECKING:
    from utterd.engine.training.evaluate import Scores

mpl.use("agg")

_PAGE = """<!doctype html><meta charset="utf-8"><title>Voice against teacher</title>
<style>body{{font-family:sans-serif;margin:2em}}td,th{{padding:.2em .6em;text-align:right}}
img{{max-width:100%}}</style>
<h1>Student and teacher on held-out sentences</h1>{tables}
<h2>Curves</h2><img src="curves.png" alt="losses by step">
<h2>Sound and spectra</h2>{shown}<h2>Every sentence</h2>{all}"""


def show(folder: Path, number: int, teacher: NDArray[np.float32], spoken: Spoken) -> None:
    """Keep one sentence as three WAV files and a picture."""
    sounds = {"teacher": teacher, "copied": spoken.copied, "own": spoken.own}
    figure, axes = pyplot.subplots(len(sounds), 1, figsize=(12, 7), sharex=True)
    for axis, (name, samples) in zip(axes, sounds.items(), strict=True):
        _wav(folder / f"{number:03d}-{name}.wav", samples)
        axis.imshow(measures.log_mel(samples), origin="lower", aspect="auto", vmin=-70, vmax=20)
        axis.set_title(name)
    figure.tight_layout()
    figure.savefig(folder / f"{number:03d}.png", dpi=70)
    pyplot.close(figure)


def write(
    folder: Path,
    summary: dict[str, dict[str, float]],
    scores: Sequence["Scores"],
    recipe: dict[str, Any],
) -> None:
    """Write `summary.json`, `curves.png` and `report.html`."""
    steps = {name: recipe[name]["step"] for name in ("acoustic", "prosody")}
    content = {"steps": steps, "means": summary}
    write_whole(folder / "summary.json", json.dumps(content, indent=1).encode())
    _curves(folder / "curves.png", recipe)
    shown = "".join(
        f'<h3>{html.escape(scores[int(p.stem)].text)}</h3><img src="shown/{p.name}" alt="spectra">'
        + "".join(
            f'<p>{n} <audio controls src="shown/{p.stem}-{n}.wav"></audio></p>'
            for n in ("teacher", "copied", "own")
        )
        for p in sorted((folder / "shown").glob("*.png"))
        if int(p.stem) < len(scores)
    )
    rows: list[dict[str, Any]] = [{f: getattr(s, f) for f in s.__struct_fields__} for s in scores]
    page = _PAGE.format(
        tables=_table([{"kind": kind} | means for kind, means in summary.items()]),
        shown=shown,
        all=_table(rows),
    )
    write_whole(folder / "report.html", page.encode())


def _curves(path: Path, recipe: dict[str, Any]) -> None:
    figure, axes = pyplot.subplots(1, 2, figsize=(12, 4))
    for axis, name in zip(axes, ("acoustic", "prosody"), strict=True):
        curve = recipe[name]["curve"]
        for loss in curve[0]:
            if loss.startswith("valid_"):
                axis.plot([r["step"] for r in curve], [r[loss] for r in curve], label=loss)
        axis.set_title(name)
        axis.set_yscale("log")
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def _table(rows: Sequence[dict[str, Any]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(v))}</td>" for v in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _wav(path: Path, samples: NDArray[np.float32]) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
