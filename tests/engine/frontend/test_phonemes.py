import pytest

from utterd.engine.frontend.data_files import read_lines
from utterd.engine.frontend.phonemes import is_syllable, syllable

from .test_reader import KOKORO


@pytest.mark.parametrize(
    ("pinyin", "said"),
    [
        ("ma1", "ma→"),
        ("ma5", "ma"),
        ("zhi1", "ꭧɨ→"),
        ("ci2", "ʦʰɨ↗"),
        ("lv4", "ly↘"),
        ("xue2", "ɕɥe↗"),
        ("yuan2", "ɥɛ↗n"),
        ("wu3", "u↓"),
        ("you3", "jou↓"),
        ("er4", "ɚ↘"),
        ("ng4", "ŋ↘"),
        ("xiong2", "ɕjʊ↗ŋ"),
        ("dui4", "twei↘"),
        ("jiu3", "ʨjou↓"),
        ("dianr3", "tja↓ɻ"),
        ("huar1", "xwa→ɻ"),
        ("shir4", "ʂə↘ɻ"),
    ],
)
def test_syllables(pinyin, said):
    assert syllable(pinyin) == said


def test_every_syllable_of_the_dictionary_uses_the_alphabet():
    known = {r for line in read_lines("characters.tsv") for r in line.split("\t")[1].split(" ")}
    assert len(known) > 1300
    for pinyin in known:
        assert set(syllable(pinyin)) <= KOKORO
        erhua = f"{pinyin[:-1]}r{pinyin[-1]}"
        if pinyin[:-1] != "er":
            assert set(syllable(erhua)) <= KOKORO


@pytest.mark.parametrize("bad", ["", "a", "1", "xx1", "ma6", "ma0", "zhua", "MA1", "你"])
def test_what_is_no_syllable(bad):
    assert not is_syllable(bad)
