import re

import pytest

from utterd.engine.frontend.data_files import read_lines
from utterd.engine.frontend.phonemes import is_syllable

from .conftest import cases


@pytest.mark.parametrize(("text", "wanted"), list(cases("readings.tsv")))
def test_reads_characters_in_context(syllables, text, wanted):
    said = syllables(text)
    for character, nth, reading in re.findall(r"(\S)(?:\[(\d)\])?=(\w+)", wanted):
        found = [s for s in said if character in s.text]
        syllable = found[int(nth or 1) - 1]
        assert syllable.pinyin.replace("r", "", syllable.text.count("儿")) == reading, character


@pytest.mark.parametrize("name", ["characters.tsv", "phrases.tsv", "phrases_car.tsv"])
def test_every_reading_of_the_data_can_be_spoken(name):
    seen = set()
    for line in read_lines(name):
        word, _, readings = line.partition("\t")
        parts = readings.split(" ")
        assert word not in seen, f"{word} twice in {name}"
        seen.add(word)
        assert name == "characters.tsv" or len(parts) == len(word), line
        assert all(part == "_" or is_syllable(part) for part in parts), line


def test_neutral_words_name_the_place(syllables):
    assert [s.spoken for s in syllables("别客气")] == ["bie2", "ke4", "qi5"]
    assert [s.pinyin for s in syllables("别客气")] == ["bie2", "ke4", "qi4"]


def test_iteration_mark_reads_as_the_character_before(syllables):
    assert [s.pinyin for s in syllables("人々")] == ["ren2", "ren2"]
