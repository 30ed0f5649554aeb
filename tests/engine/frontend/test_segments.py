import pytest

from utterd.engine.frontend.segments import BREATH, FIRST


def _texts(reader, text):
    return [segment.text for segment in reader.analyse(text).segments]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("好的，马上为您导航到最近的加油站。", ["好的，", "马上为您导航到最近的加油站。"]),
        ("前方五百米右转，然后直行两公里。", ["前方五百米右转，", "然后直行两公里。"]),
        ("你好。", ["你好。"]),
        ("啊，你好，今天过得怎么样？", ["啊，你好，", "今天过得怎么样？"]),
    ],
)
def test_first_clause_is_short(reader, text, clauses):
    assert _texts(reader, text) == clauses
    first = reader.analyse(text).segments[0]
    assert len(first.syllables) <= FIRST


def test_no_clause_is_longer_than_a_breath(reader):
    text = (
        "然后沿着主干道行驶大约两公里到达目的地附近的停车场请注意限速六十公里每小时"
        "并且小心前方的施工路段以及穿行的行人和非机动车"
    )
    sizes = [len(segment.syllables) for segment in reader.analyse(text).segments]
    assert sum(sizes) == len(text)
    assert all(5 <= size <= BREATH for size in sizes)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (
            "我们昨天在那个商店里一共花了三万五千六百七十八块九毛钱买了一台很大的电视机",
            "三万五千六百七十八块九毛",
        ),
        (
            "请帮我在应用商店里面搜索一下这个叫做Visual Studio Code的软件然后把它装上",
            "Visual Studio Code",
        ),
        (
            "推荐您去北京临空智选假日酒店（国际展览中心和平里店）附近的餐厅吃晚饭好吗",
            "（国际展览中心和平里店）",
        ),
    ],
)
def test_no_cut_inside_numbers_english_or_brackets(reader, text, whole):
    assert any(whole in clause for clause in _texts(reader, text))


def test_pauses_follow_the_marks(reader):
    def pause(text):
        return reader.analyse(text).segments[0].pause_ms

    assert pause("走吧") == 0
    assert (
        0
        < pause("我们先走，后面的事情等到了再说吧")
        < pause("走吧；")
        < pause("走吧。")
        < pause("走吧\n")
    )
    assert pause("走吗？") >= pause("走吧。")


def test_marks_become_symbols_of_the_voice(reader):
    segments = reader.analyse("他说：“走！”（真的？）").segments
    symbols = "".join(p.symbol for segment in segments for p in segment.phonemes)
    assert [c for c in symbols if c in ":“!”(?)"] == list(":“!”(?)")


def test_quoted_sentence_stays_with_its_marks(reader):
    assert _texts(reader, "他说：“走吧。”然后走了。") == ["他说：“走吧。”", "然后走了。"]


def test_a_long_text_comes_sentence_by_sentence(reader):
    parts = reader.iterate("第一句话。" * 500)
    assert next(parts).segments[0].text == "第一句话。"
