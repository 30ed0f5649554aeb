import os

import pytest

from utterd.engine.frontend.reader import Reader
from utterd.engine.frontend.user_lexicon import Entry, UserLexicon, parse


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    path = tmp_path_factory.mktemp("lexicon") / "lexicon.txt"
    path.write_text("", "utf-8")
    reader = Reader(path)

    def run(lexicon, text):
        path.write_text(lexicon, "utf-8")
        os.utime(path, ns=(run.stamp, run.stamp))
        run.stamp += 10**9
        return reader.analyse(text), reader.lexicon

    run.stamp = 10**18
    return run


def _pinyin(analysis):
    return [s.pinyin for g in analysis.segments for s in g.syllables]


@pytest.mark.parametrize(
    ("line", "word", "entry"),
    [
        ("重庆\tchong2 qing4", "重庆", Entry(readings=("chong2", "qing4"))),
        ("重庆 = chong2 qing4", "重庆", Entry(readings=("chong2", "qing4"))),
        ("重庆 chong2 qing4", "重庆", Entry(readings=("chong2", "qing4"))),
        ("ES8 = E S 八", "ES8", Entry(text="E S 八")),
        ("Kokoro\t/kˈOkəɹˌO/", "Kokoro", Entry(phonemes="kˈOkəɹˌO")),
    ],
)
def test_forms_of_a_line(line, word, entry):
    assert parse(line) == (word, entry)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("重庆", "expected a word and its reading"),
        ("重庆\tchong2", "1 syllables for 2 characters"),
        ("重庆\tchong2 qqq4", "no syllable of Mandarin"),
        ("Kokoro\t/k#/", "no phoneme #"),
        ("心\t/kˈO/", "give pinyin"),
    ],
)
def test_bad_lines_say_why(line, says):
    with pytest.raises(ValueError, match=says):
        parse(line)


def test_overrides_everything(read):
    analysis, _ = read("银行\tyin2 xing2\n", "去银行")
    assert _pinyin(analysis) == ["qu4", "yin2", "xing2"]
    analysis, _ = read("ES8 = 蔚来八\n", "开ES8去")
    assert analysis.normalized == "开蔚来八去"
    assert analysis.segments[0].words[1].start == 1
    analysis, _ = read("Kokoro\t/kˈOkəɹˌO/\n", "Kokoro你好")
    assert "".join(p.symbol for p in analysis.segments[0].phonemes).startswith("kˈOkəɹˌO ")


def test_the_longest_word_wins(read):
    analysis, _ = read("行\thang2\n行人\txing2 ren2\n", "行人行")
    assert _pinyin(analysis) == ["xing2", "ren2", "hang2"]


def test_a_word_of_letters_stands_alone(read):
    analysis, _ = read("AI = 人工智能\n", "AI和MAIN")
    assert analysis.normalized == "人工智能和MAIN"


def test_is_read_again_when_it_changes(read):
    assert _pinyin(read("行\thang2\n", "行")[0]) == ["hang2"]
    assert _pinyin(read("行\txing2\n", "行")[0]) == ["xing2"]
    assert _pinyin(read("", "行")[0]) == ["xing2"]


def test_problems_are_reported_and_the_rest_is_used(read):
    analysis, lexicon = read("# 注\n行\thang2\n坏\n行\txing2\n好\thao4\n", "行好")
    assert _pinyin(analysis) == ["xing2", "hao4"]
    assert len(lexicon.problems) == 2
    assert ":3:" in lexicon.problems[0]
    assert "given twice" in lexicon.problems[1]


def test_a_missing_file_is_a_problem_not_an_error(tmp_path):
    lexicon = UserLexicon(tmp_path / "none.txt")
    assert "cannot be read" in lexicon.problems[0]
    (tmp_path / "none.txt").write_text("行\thang2\n", "utf-8")
    assert lexicon.refresh()
    assert lexicon.problems == ()
    assert len(lexicon) == 1


def test_a_file_that_breaks_leaves_the_last_good_one(tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text("行\thang2\n", "utf-8")
    lexicon = UserLexicon(path)
    path.write_bytes(b"\xff\xfe\x00")
    assert not lexicon.refresh()
    assert len(lexicon) == 1
    assert "cannot be read" in lexicon.problems[0]
