import re

import pytest

from utterd.engine.frontend import phrases
from utterd.engine.frontend.data_files import read_lines
from utterd.engine.frontend.phonemes import is_syllable
from utterd.engine.frontend.readings import Readings

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


def test_a_phrase_that_is_added_again_is_replaced_and_others_of_its_character_stay():
    book = phrases.PhraseBook(["一一\tyi1 yi1", "一二三\tyi1 er4 san1", "二一\ter4 yi1"])
    assert book.cover("一二三二一", frozenset()) == [(0, 3), (3, 5)]
    book.add("一一", "yi2 yi1")
    book.add("一二三二", "yi4 er4 san1 er4")
    assert (book.get("一一"), book.get("一二三"), book.get("一")) == (
        "yi2 yi1",
        "yi1 er4 san1",
        None,
    )
    assert book.cover("一二三二一", frozenset()) == [(0, 4)]
    assert book.cover("三三", frozenset()) == []


def test_the_usual_reading_is_the_first_of_the_file():
    readings = Readings()
    for line in read_lines("characters.tsv"):
        character, _, found = line.partition("\t")
        assert readings._usual[character] == found.split(" ")[0]
    assert readings._usual.get("a", "") == readings._usual.get("\U0010ffff", "") == ""


def test_every_phrase_of_the_file_is_in_the_book():
    lines = list(read_lines("phrases.tsv"))
    book = phrases.PhraseBook(lines)
    for line in lines:
        phrase, _, readings = line.partition("\t")
        assert book.get(phrase) == readings
