"""The held-out sentences in the teacher's voice, rendered once and kept."""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from utterd.engine.frontend.reader import Reader
from utterd.engine.training import dataset, plan, shards
from utterd.engine.training.dataset import Example
from utterd.engine.training.teacher import Teacher
from utterd.engine.training.texts import HeldOut


def render(
    sentences: list[tuple[int, HeldOut]],
    vocabulary: dict[str, int],
    speaker: str,
    folder: Path,
    cache: Path,
) -> list[Example]:
    """Return the teacher's reading of the sentences, in their order.

    Args:
        sentences: what to say, each with its number in the cache.
        vocabulary: phoneme ids.
        speaker: the teacher's voice.
        folder: the teacher's.
        cache: where shards of what was rendered lie, one sentence each.
    """
    reader = Reader()
    cache.mkdir(parents=True, exist_ok=True)
    present = shards.find(cache)
    loaded: Teacher | None = None
    examples = []
    for number, sentence in tqdm(sentences, desc="teacher", unit="sentence"):
        phonemes = plan.phonemes(reader.analyse(sentence.text).segments)
        tokens = np.array([0, *(vocabulary[p] for p in phonemes), 0], np.int16)
        kept = shards.read(present[number])[0] if number in present else None
        if kept is None or not np.array_equal(kept.tokens, tokens):
            if number in present:
                present[number].unlink()  # the front end reads this sentence otherwise by now
            loaded = loaded or Teacher(folder, speaker)
            kept = shards.taught(number, tokens, loaded.speak(tokens))
            shards.write(cache, number, [kept])
        examples.append(dataset.example(kept))
    return examples
