from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utterd.engine.frontend import chinese_numbers
from utterd.engine.frontend.english import numbers as english_numbers
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise import RULES, normalise
from utterd.engine.frontend.normalise.rule import apply

from .conftest import CASES, cases

FILES = sorted(path.name for path in CASES.glob("normalise_*.tsv"))


@pytest.mark.parametrize("name", FILES)
def test_written_forms_are_said(reader, name):
    wrong = [
        (written, said, found)
        for written, said in cases(name)
        if (found := reader.analyse(written).normalized) != said
    ]
    assert not wrong


def test_every_family_has_cases():
    families = {
        path.stem for path in (Path(__file__).parents[3] / "engine/frontend/normalise").glob("*.py")
    } - {"__init__", "rule", "amounts"}
    assert families == {name.removeprefix("normalise_").removesuffix(".tsv") for name in FILES}


@given(st.integers(0, 10**16 - 1))
def test_cardinals_read_back(number):
    assert _value(chinese_numbers.cardinal(str(number))) == number


@given(st.integers(0, 10**15 - 1))
def test_english_cardinals_have_only_words(number):
    said = english_numbers.cardinal(str(number))
    assert said.replace(" ", "").isalpha()
    assert "  " not in said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1998", "nineteen ninety eight"),
        ("2005", "two thousand five"),
        ("1900", "nineteen hundred"),
        ("1805", "eighteen oh five"),
    ],
)
def test_english_years(written, said):
    assert english_numbers.year(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [("1", "first"), ("12", "twelfth"), ("20", "twentieth"), ("103", "one hundred third")],
)
def test_english_ordinals(written, said):
    assert english_numbers.ordinal(written) == said


def test_digits_keep_their_own_place():
    said = normalise(Mapped.of("于2022年"))
    assert said.text == "于二零二二年"
    assert said.starts == [0, 1, 2, 3, 4, 5]


def test_other_forms_stand_for_the_whole():
    said = normalise(Mapped.of("共10km/h"))
    assert said.text == "共每小时十公里"
    assert said.span(1, 7) == (1, 7)


def test_telephone_ones_are_said_yao(syllables):
    assert [s.pinyin for s in syllables("拨13100000000")][1:4] == ["yao1", "san1", "yao1"]
    assert syllables("1310年")[0].pinyin == "yi1"


@given(st.text(alphabet="0123456789.,:-/~%+=x℃年月日点分元$¥ kmgGPT号²½Ⅳ一 ", max_size=24))
def test_any_mixture_of_signs_is_read(text):
    said = normalise(Mapped.of(text))
    assert len(said.text) == len(said.starts) == len(said.ends)
    assert said.starts == sorted(said.starts)
    assert all(a <= b <= len(text) for a, b in zip(said.starts, said.ends, strict=True))


EVERYWHERE = [replace(rule, near=frozenset()) for rule in RULES]


@pytest.mark.parametrize("name", FILES)
def test_near_never_hides_a_rule(name):
    for written, _ in cases(name):
        mapped = Mapped.of(written)
        assert apply(mapped, RULES) == apply(mapped, EVERYWHERE)


@given(
    st.text(
        alphabet="0123456789.,:-/~%+=x℃年月日点分元$¥kmgGPT号楼第ABCVLR#@拨打电话尾至", max_size=16
    )
)
def test_near_never_hides_a_rule_in_any_text(text):
    assert apply(Mapped.of(text), RULES) == apply(Mapped.of(text), EVERYWHERE)


def test_no_rule_matches_nothing():
    assert [rule.pattern.pattern for rule in RULES if rule.pattern.match("")] == []


def _value(said: str) -> int:
    """Read a Chinese cardinal back, independently of how it was made."""
    total = section = digit = 0
    for c in said:
        if c in "零一二三四五六七八九":
            digit = "零一二三四五六七八九".index(c)
        elif c == "两":
            digit = 2
        elif c in "十百千":
            section += (digit or 1) * 10 ** ("十百千".index(c) + 1)
            digit = 0
        elif c == "万":
            total, section, digit = total + (section + digit) * 10**4, 0, 0
        else:
            total, section, digit = (total + section + digit) * 10**8, 0, 0
    return total + section + digit
