"""Make the compact data files of the front end from their sources (development only).

`python -m utterd.engine.frontend.build_data --misaki WHEEL --g2pm WHEEL` reads the wheels as
archives; pypinyin comes with the extra `frontend-data`. Origin and licence of each file:
`data/SOURCES.md`.
"""

import argparse
import io
import json
import pickle
import unicodedata
import zipfile
from collections import OrderedDict
from importlib import resources
from pathlib import Path

import numpy as np

from utterd.engine.frontend.phonemes import is_syllable

OUT = Path(__file__).parent / "data"
_MARKS = {"\u0304": "1", "\u0301": "2", "\u030c": "3", "\u0300": "4"}


def numbered(marked: str) -> str:
    """Turn `lǜ` into `lv4`; a syllable without mark gets 5."""
    tone = "5"
    letters: list[str] = []
    for c in unicodedata.normalize("NFD", marked.strip()):
        if c in _MARKS:
            tone = _MARKS[c]
        elif c == "\u0308":
            letters[-1] = "v"
        elif c == "\u0302":
            letters[-1] = "ê"
        else:
            letters.append(c)
    return "".join(letters) + tone


def chinese() -> None:
    """Write `characters.tsv` and `phrases.tsv` from pypinyin's dictionaries."""
    root = resources.files("pypinyin")
    characters = json.loads((root / "pinyin_dict.json").read_text("utf-8"))
    phrases = json.loads((root / "phrases_dict.json").read_text("utf-8"))
    single: dict[str, list[str]] = {}
    for code, readings in characters.items():
        found = [numbered(r) for r in readings.split(",")]
        single[chr(int(code))] = list(dict.fromkeys(found))
    lines = [f"{c}\t{' '.join(r)}\n" for c, r in sorted(single.items())]
    (OUT / "characters.tsv").write_text("".join(lines), "utf-8")
    rows = []
    for word, readings in sorted(phrases.items()):
        found = [numbered(r[0]) for r in readings]
        if len(found) != len(word) or len(word) < 2:
            continue
        for i, c in enumerate(word):
            # Some entries carry the sandhi of 一 and 不; the stage of that name applies it.
            if c == "一" and found[i] in ("yi2", "yi4"):
                found[i] = "yi1"
            if c == "不" and found[i] == "bu2":
                found[i] = "bu4"
        rows.append(f"{word}\t{' '.join(found)}\n")
    (OUT / "phrases.tsv").write_text("".join(rows), "utf-8")


def english(misaki: Path) -> None:
    """Write `english.tsv`: word, phonemes; heteronyms as TAG=phonemes|TAG=phonemes."""
    with zipfile.ZipFile(misaki) as wheel:
        gold = json.loads(wheel.read("misaki/data/us_gold.json"))
        silver = json.loads(wheel.read("misaki/data/us_silver.json"))
    merged: dict[str, str] = {}
    for word, said in [*silver.items(), *gold.items()]:
        if not word.isascii() or any(c in "\t\n" for c in word):
            continue
        if isinstance(said, dict):
            tags = {k: v for k, v in said.items() if v}
            text = (
                "|".join(f"{k}={v}" for k, v in tags.items()) if len(tags) > 1 else tags["DEFAULT"]
            )
        else:
            text = said
        # Version 1.0 of the voice writes the flap as T and the glottal stop as t.
        merged[word] = text.replace("ɾ", "T").replace("ʔ", "t")
    kept = {w: p for w, p in merged.items() if w == w.lower() or merged.get(w.lower()) != p}
    lines = sorted(f"{w}\t{p}\n".encode() for w, p in kept.items())
    (OUT / "english.tsv").write_bytes(b"".join(lines))


class _Plain(pickle.Unpickler):
    """Unpickles arrays and plain containers, nothing else."""

    def find_class(self, module: str, name: str) -> object:
        allowed = {
            ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("collections", "OrderedDict"): OrderedDict,
        }
        if (module, name) not in allowed:
            raise pickle.UnpicklingError(f"{module}.{name} is not data")
        return allowed[module, name]


def _spelled(reading: str) -> str:
    """Write a reading of g2pM as the front end does."""
    return "er5" if reading == "r5" else reading.replace("u:", "v")


def polyphones(g2pm: Path) -> None:
    """Write `polyphones.npz`: the network of g2pM, both directions stacked, in half precision."""
    with zipfile.ZipFile(g2pm) as wheel:
        weights, characters, classes, dictionary = (
            _Plain(io.BytesIO(wheel.read(f"g2pM/{name}.pkl"))).load()
            for name in ("np_ckpt", "char2idx", "class2idx", "digest_cedict")
        )
    names = [_spelled(name) for name, _ in sorted(classes.items(), key=lambda kv: kv[1])]
    index = {name: i for i, name in enumerate(names)}
    order = sorted((c for c in characters if len(c) == 1), key=lambda c: characters[c])
    rows = [characters["<UNK>"], characters["시"], characters["끝"]]
    order = [c for c in order if characters[c] not in rows and c not in ("시", "끝")]
    rows += [characters[c] for c in order]

    def both(name: str) -> np.ndarray:
        return np.stack([weights[f"lstm.{name}_l0"], weights[f"lstm.{name}_l0_reverse"]])

    targets = sorted(
        c
        for c, readings in dictionary.items()
        if len(c) == 1 and sum(is_syllable(_spelled(r)) for r in readings) > 1
    )
    choices = []
    for c in targets:
        spelled = [_spelled(reading) for reading in dictionary[c]]
        found = [index[r] for r in spelled if r in index and is_syllable(r)]
        choices.append(" ".join(map(str, found)))
    np.savez_compressed(
        OUT / "polyphones.npz",
        embedding=weights["embedding.weight"][rows].astype(np.float16),
        into=both("weight_ih").transpose(0, 2, 1).astype(np.float16),
        recur=both("weight_hh").transpose(0, 2, 1).astype(np.float16),
        bias=(both("bias_ih") + both("bias_hh")).astype(np.float16),
        hidden=weights["logit_layer.0.weight"].T.astype(np.float16),
        hidden_bias=weights["logit_layer.0.bias"].astype(np.float16),
        out=weights["logit_layer.2.weight"].T.astype(np.float16),
        out_bias=weights["logit_layer.2.bias"].astype(np.float16),
        characters=np.array("".join(order)),
        classes=np.array(" ".join(names)),
        targets=np.array("".join(targets)),
        choices=np.array("|".join(choices)),
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misaki", type=Path, required=True, help="wheel of misaki 0.9.4")
    parser.add_argument("--g2pm", type=Path, required=True, help="wheel of g2pM 0.1.2.5")
    args = parser.parse_args()
    chinese()
    english(args.misaki)
    polyphones(args.g2pm)
    for path in sorted(OUT.iterdir()):
        print(f"{path.stat().st_size:>10} {path.name}")


if __name__ == "__main__":
    main()
