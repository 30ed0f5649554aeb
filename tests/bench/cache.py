"""From a text received by a worker to samples in the ring: made, from memory, from disk.

    python tests/bench/cache.py [--voice DIR] [--rounds N] [--json]

A real worker and a cache in a folder of its own. Every text is said for the first time, then again
(from memory), and again by a new worker (from disk); its samples are thrown away.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.engine.running import Running
from utterd.daemon.bench import statistics_of
from utterd.engine.messages import Alive, Finished, FirstAudio

TEXTS = {
    "zh": (
        "好的。",
        "打开空调。",
        "前方路口右转。",
        "正在为你导航到最近的加油站。",
        "明天上午十点你有一个会议，要我提前提醒你吗？",
    ),
    "en": ("Turn left at the next junction.", "You have a meeting at ten, shall I remind you?"),
}


class Speaker:
    """A worker with a cache; `texts` are those that its voice can say."""

    def __init__(self, voice: Path, folder: str) -> None:
        options = {"cache_memory_bytes": 16 << 20, "cache_disk_bytes": 1 << 28}
        self._running = Running(voice, cache_dir=folder, **options)
        languages = self._running.ready().languages
        self.texts = [text for language in languages for text in TEXTS.get(language, ())]
        self._generation = 0

    def say(self, text: str) -> float:
        """Milliseconds from the text to the first samples in the ring."""
        self._generation += 1
        self._running.say(self._generation, text)
        self._running.played(self._generation)
        assert self._running.of(Finished, self._generation)
        (first,) = self._running.of(FirstAudio, self._generation)
        return (first.first_written_ns - first.received_ns) / 1e6

    def close(self) -> dict[str, int | str]:
        """End it; what its cache counted."""
        self._running.until(Alive)
        alive = self._running.until(Alive)
        self._running.close()
        assert isinstance(alive, Alive)
        assert alive.cache is not None
        return {name: getattr(alive.cache, name) for name in alive.cache.__struct_fields__}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("UTTERD_TEST_DATA", "~/.cache/utterd-tests")
    parser.add_argument("--voice", type=Path, default=Path(data).expanduser() / "voices/kokoro")
    parser.add_argument("--rounds", type=int, default=20, help="times each text comes from memory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    memory = []
    with tempfile.TemporaryDirectory(prefix="utterd-bench.") as folder:
        speaker = Speaker(options.voice, folder)
        made = [speaker.say(text) for text in speaker.texts]
        for number in range(options.rounds):
            memory += [speaker.say(text) for text in speaker.texts]
            if sys.stderr.isatty():
                print(f"\r\033[Kround {number + 1} of {options.rounds}", end="", file=sys.stderr)
        first = speaker.close()
        again = Speaker(options.voice, folder)
        time.sleep(0.5)
        disk = [again.say(text) for text in again.texts]
        second = again.close()
    result = {
        "made_ms": statistics_of(made),
        "from_memory_ms": statistics_of(memory),
        "from_disk_ms": statistics_of(disk),
        "counted": [first, second],
        "load_average": load,
    }
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:<16} {value}")


if __name__ == "__main__":
    main()
