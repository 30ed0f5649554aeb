"""What is understood is counted in the units that matter."""

import pytest

from utterd.engine.frontend.reader import Reader
from utterd.engine.training import hearing
from utterd.engine.training.hearing import Heard


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


@pytest.mark.parametrize(
    ("heard", "wanted", "count"),
    [
        ("kitten", "sitting", 3),
        ("", "abc", 3),
        ("abc", "", 3),
        ("abc", "abc", 0),
        ("xabc", "abc", 1),
        ("acb", "abc", 2),
    ],
)
def test_errors_are_the_least_number_of_edits(heard, wanted, count) -> None:
    assert hearing.errors(list(heard), list(wanted)) == count


def test_homophones_and_figures_are_understood(reader) -> None:
    said = hearing.syllables(reader, "前方五百米处靠右。")
    assert said[:2] == ["qian2", "fang1"]
    assert hearing.syllables(reader, "前方500米处靠右") == said
    assert hearing.errors(hearing.syllables(reader, "钱方五百米处靠右"), said) == 0


def test_another_tone_is_another_syllable(reader) -> None:
    said, heard = (hearing.syllables(reader, t) for t in ("妈", "马"))
    assert hearing.errors(heard, said) == 1


def test_punctuation_says_nothing(reader) -> None:
    assert hearing.phonemes(reader, "打开，GPS！") == hearing.phonemes(reader, "打开GPS")


def test_rates_count_units_not_sentences() -> None:
    found = [
        Heard("zh", "a", "own", "", 10, 4, 1),
        Heard("zh", "b", "own", "", 30, 4, 0),
        Heard("zh", "a", "teacher", "", 10, 0, 0),
        Heard("en", "c", "own", "", 8, 2, 2),
    ]
    rates = hearing.rates(found)
    assert rates["zh"]["own"] == 20
    assert rates["zh"]["own_without_tone"] == 2.5
    assert rates["zh"]["teacher"] == 0
    assert rates["en"] == {"units": 8, "own": 25}
