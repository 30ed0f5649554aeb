"""`utterd explain`: what the front end makes of a text, stage by stage."""

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from utterd.engine.frontend.contract import Analysis, Segment
from utterd.engine.frontend.reader import Reader
from utterd.engine.frontend.ssml import SsmlError


def as_object(analysis: Analysis) -> dict[str, object]:
    """Return an analysis as a JSON object; offsets are characters of the original text."""
    return {
        "text": analysis.text,
        "normalized": analysis.normalized,
        "syllables": [
            {"text": s.text, "pinyin": s.pinyin, "spoken": s.spoken, "start": s.start, "end": s.end}
            for segment in analysis.segments
            for s in segment.syllables
        ],
        "phonemes": " ".join(
            p for p in (_symbols(segment).strip() for segment in analysis.segments) if p
        ),
        "segments": [_segment(segment) for segment in analysis.segments],
        "skipped": [
            {"start": s.start, "end": s.end, "text": s.text, "reason": s.reason}
            for s in analysis.skipped
        ],
    }


def _symbols(segment: Segment) -> str:
    return "".join(phoneme.symbol for phoneme in segment.phonemes)


def _segment(segment: Segment) -> dict[str, object]:
    return {
        "text": segment.text,
        "start": segment.start,
        "end": segment.end,
        "language": segment.language,
        "phonemes": _symbols(segment),
        "pause_ms": segment.pause_ms,
        "words": [{"start": w.start, "end": w.end, "first": w.first} for w in segment.words],
        "marks": [{"name": m.name, "first": m.first} for m in segment.marks],
        "rate": segment.rate,
        "pitch": segment.pitch,
        "volume": segment.volume,
        "speaker": segment.speaker,
    }


def table(analysis: Analysis) -> str:
    """Return an analysis as lines for people, one stage under the other."""
    lines = [f"text        {analysis.text}", f"normalized  {analysis.normalized}"]
    for n, segment in enumerate(analysis.segments, 1):
        lines.append(
            f"segment {n:<3} {segment.text}  [{segment.start}:{segment.end}]  {segment.language}  "
            f"pause {segment.pause_ms} ms"
        )
        if segment.syllables:
            lines.append("  readings  " + " ".join(s.pinyin for s in segment.syllables))
            lines.append(
                "  spoken    "
                + " ".join(
                    s.spoken + ("*" if s.spoken != s.pinyin else "") for s in segment.syllables
                )
            )
        lines.append("  phonemes  " + _symbols(segment))
        words = (f"{analysis.text[w.start : w.end]}@{w.first}" for w in segment.words)
        lines.append("  words     " + " ".join(words))
        if segment.marks:
            lines.append("  marks     " + " ".join(f"{m.name}@{m.first}" for m in segment.marks))
        asked = (segment.rate, segment.pitch, segment.volume)
        if asked != (1, 1, 1) or segment.speaker:
            lines.append(
                f"  prosody   rate {asked[0]:g}, pitch {asked[1]:g}, volume {asked[2]:g}"
                + (f", speaker {segment.speaker}" if segment.speaker else "")
            )
    lines += [f"skipped     {s.text!r} [{s.start}:{s.end}]  {s.reason}" for s in analysis.skipped]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="utterd explain",
        description="Show how a text is read: normalised, with its readings, tones and phonemes. "
        "A tone that sandhi changed has a star.",
        epilog="exit status: 0 read, 1 bad markup, 2 wrong use",
    )
    parser.add_argument("text", help="the text; - reads lines from standard input")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each text")
    parser.add_argument("--ssml", action="store_true", help="the text is SSML")
    parser.add_argument("--language", default="", help="zh or en; default: as the script tells")
    parser.add_argument("--lexicon", type=Path, default=None, help="the user's lexicon file")
    parser.add_argument(
        "--emoji", choices=("name", "silent", "skip"), default="skip", help="what to do with emoji"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    args = _parser().parse_args(argv)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    try:
        return _explain(args)
    except BrokenPipeError:
        # The reader of the output had enough (head); nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _explain(args: argparse.Namespace) -> int:
    reader = Reader(args.lexicon, emoji_policy=args.emoji)
    for problem in reader.lexicon.problems:
        print(f"utterd explain: {problem}", file=sys.stderr)
    status = 0
    texts = (line.rstrip("\r\n") for line in sys.stdin) if args.text == "-" else iter([args.text])
    for text in texts:
        try:
            analysis = reader.analyse(
                text, language=args.language, format="ssml" if args.ssml else "plain"
            )
        except SsmlError as error:
            print(f"utterd explain: {error}", file=sys.stderr)
            status = 1
            if args.json:
                print(json.dumps({"text": text, "error": str(error)}, ensure_ascii=False))
            continue
        out = json.dumps(as_object(analysis), ensure_ascii=False) if args.json else table(analysis)
        print(out.encode("utf-8", "backslashreplace").decode("utf-8"), flush=args.text == "-")
    return status


if __name__ == "__main__":
    sys.exit(main())
