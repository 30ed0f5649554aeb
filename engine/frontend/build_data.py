"""Make the compact data files of the front end from their sources (development only).

`python -m utterd.engine.frontend.build_data --misaki WHEEL --g2pm WHEEL` reads the wheels as archives;
pypinyin must be installed. Each file is described with origin and licence in `data/SOURCES.md`.
"""

import argparse
import json
import unicodedata
import zipfile
from importlib import resources
from pathlib import Path

OUT = Path(__file__).parent / "data"
_MARKS = {"\u0304": "1", "\u0301": "2", "\u030c": "3", "\u0300": "4"}


def numbered(marked: str) -> str:
    """Turn `lǜ` into `lv4`; a syllable without mark gets 5."""
    tone = "5"
    letters = []
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


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misaki", type=Path, required=True, help="wheel of misaki 0.9.4")
    args = parser.parse_args()
    chinese()
    english(args.misaki)
    for path in sorted(OUT.iterdir()):
        print(f"{path.stat().st_size:>10} {path.name}")


if __name__ == "__main__":
    main()
