"""A small voice beside its teacher, the whole path, on sentences it was never trained on.

    python tests/bench/voice.py --voice DIR --teacher DIR [--listen] [--rate R] [--out DIR]
                                [--every N] [--json]

Both are voice packages (`voice.toml`). Every held-out sentence goes through the front end and
each voice by itself, segment by segment with the pauses between; the sound is scored by DNSMOS
(OVRL and P.808, at a peak of 0.7), and the small voice's times are taken: text to first samples,
and synthesis time per time of speech. With `--listen` two recognisers say how much gets through
(Whisper of Chinese syllables with their tones and of mixed sentences, hama of English phones);
with `--rate` all is spoken faster or slower. With `--out` the sounds are kept as WAV files.
Needs the extras `train` and `evaluate`, and `recognise` to listen. One thread; measure on a quiet
machine, or look at `load`.
"""

import argparse
import json
import os
import resource
import statistics
import sys
import time
import wave
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from utterd.engine.frontend.reader import Reader
from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.training import hearing, measures, texts
from utterd.engine.voices import load
from utterd.engine.voices.contract import Controls, Voice

if TYPE_CHECKING:
    from utterd.engine.training.recognise import Listener

LENGTHS = (4, 10, 20, 40)
SYLLABLES = (
    "正在为你导航到最近的加油站请在前面路口右转然后沿着大路一直开到河边的停车场旁边有家面馆味道不错"
)


@dataclass
class Said:
    """One text, spoken."""

    samples: NDArray[np.float32]
    first_ms: float
    whole_ms: float
    cpu_ms: float

    @property
    def factor(self) -> float:
        return self.cpu_ms / max(1.0, len(self.samples) / 24)


def say(voice: Voice, reader: Reader, text: str, rate: float = 1.0) -> Said:
    parts: list[NDArray[np.float32]] = []
    first = 0.0
    began, cpu = time.perf_counter(), time.process_time()
    for segment in reader.analyse(text).segments:
        speech = voice.speak(segment, Controls(rate=rate), lambda: False)
        for chunk in speech.chunks():
            first = first or (time.perf_counter() - began) * 1000
            parts.append(chunk)
        pause = round(segment.pause_ms * voice.sample_rate / 1000 / rate)
        parts.append(np.zeros(pause, np.float32))
    whole = (time.perf_counter() - began) * 1000
    return Said(np.concatenate(parts), first, whole, (time.process_time() - cpu) * 1000)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(float(np.quantile(values, 0.5)), 3),
        "p95": round(float(np.quantile(values, 0.95)), 3),
    }


def keep(path: Path, voice: Voice, samples: NDArray[np.float32]) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(voice.sample_rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def speed(voice: Voice, reader: Reader) -> dict[str, object]:
    """Text to first samples by length, and the real-time factor of whole sentences."""
    by_length: dict[str, object] = {}
    factors: list[float] = []
    for length in tqdm(LENGTHS, desc="speed", unit="length"):
        first = []
        for shift in range(len(SYLLABLES) - 40 + 1):
            said = say(voice, reader, SYLLABLES[shift : shift + length] + "。")
            first.append(said.first_ms)
            factors.append(said.factor)
        by_length[f"first_ms_{length}_syllables"] = quantiles(first)
    return by_length | {"real_time_factor": quantiles(factors)}


def quality(options: argparse.Namespace, voices: dict[str, Voice]) -> dict[str, object]:
    reader = Reader()
    sentences = texts.held_out()[:: options.every]
    scores: dict[str, dict[str, list[measures.Scores]]] = {n: defaultdict(list) for n in voices}
    listener = listening() if options.listen else None
    heard: list[hearing.Heard] = []
    for number, sentence in enumerate(tqdm(sentences, desc="quality", unit="sentence")):
        for name, voice in voices.items():
            samples = say(voice, reader, sentence.text, options.rate).samples
            if options.out:
                keep(options.out / f"{number:03d}-{name}.wav", voice, samples)
            if listener:
                heard.append(listener.hear(sentence.kind, sentence.text, name, samples))
            score = measures.dnsmos_scores(samples)
            for kind in (sentence.kind, "all"):
                scores[name][kind].append(score)
    found: dict[str, object] = {
        name: {
            kind: {
                "sentences": len(of_kind),
                "overall": round(statistics.mean(s.overall for s in of_kind), 4),
                "p808": round(statistics.mean(s.p808 for s in of_kind), 4),
            }
            for kind, of_kind in kinds.items()
        }
        for name, kinds in scores.items()
    }
    return found | {"wrong_percent": hearing.rates(heard)} if listener else found


def listening() -> "Listener":
    """Return the recognisers; they are in an extra of their own."""
    from utterd.engine.training.recognise import Listener  # noqa: PLC0415

    return Listener()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--voice", type=Path, required=True, help="package of the small voice")
    parser.add_argument("--teacher", type=Path, help="package of its teacher; leave out for speed")
    parser.add_argument("--speaker", default="", help="the teacher's; default: the small voice's")
    parser.add_argument("--listen", action="store_true", help="count what recognisers understand")
    parser.add_argument("--rate", type=float, default=1.0, help="of quality's speech, 0.5 to 3")
    parser.add_argument("--out", type=Path, help="folder for the sounds")
    parser.add_argument("--every", type=int, default=1, help="take every nth sentence only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    runtime = OnnxCpu()
    began = time.perf_counter()
    voice = load.load(options.voice, "", runtime, 1)
    reader = Reader()
    say(voice, reader, "好的。")
    ready = time.perf_counter() - began
    result: dict[str, object] = {"ready_s": round(ready, 3)} | speed(voice, reader)
    result["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    if options.teacher:
        speaker = options.speaker or voice.speakers[0]
        teacher = load.load(options.teacher, speaker, runtime, 1)
        result["quality"] = quality(options, {"teacher": teacher, "student": voice})
        teacher.close()
    voice.close()
    result["load"] = os.getloadavg()[0]
    if options.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        for key, value in result.items():
            print(f"{key:<26} {value}")


if __name__ == "__main__":
    sys.exit(main())
