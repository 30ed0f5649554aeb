"""Cleaning, simplifying, markup, emoji, inline readings: the stages before normalisation."""

import pytest

from utterd.engine.frontend import emoji, inline, markup
from utterd.engine.frontend.clean import clean
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.simplify import Simplify


@pytest.mark.parametrize(
    ("written", "cleaned"),
    [
        ("Ｃ区１号％", "C区1号%"),
        ("ａ，ｂ。（ｃ）", "a，b。（c）"),
        ("cafe\u0301 naïve Zürich", "cafe naive Zurich"),
        ("零宽\u200b空格\ufeff", "零宽空格"),
        ("全角\u3000空格\u00a0", "全角 空格 "),
        ("٣٤ 𝐀𝐁 ﬁ", "34 AB fi"),
        ("二〇二四", "二零二四"),
        ("ⅳ½²", "ⅳ½²"),
        ("a\x00b\x07", "a b "),
        ("一\r\n二", "一\n\n二"),
    ],
)
def test_one_way_to_write(written, cleaned):
    assert clean(Mapped.of(written))[0].text == cleaned


@pytest.mark.parametrize("odd", ["\ud800", "\ue000", "\U000f0000", "\uffff"])
def test_what_has_no_sound_is_reported(odd):
    mapped, skipped = clean(Mapped.of(f"你{odd}好", 10))
    assert mapped.text == "你 好"
    assert [(s.start, s.end, s.text) for s in skipped] == [(11, 12, odd)]


def test_what_has_no_sound_is_not_repeated():
    mapped, skipped = clean(Mapped.of("\ud800々"))
    assert mapped.text == "  "
    assert [(s.start, s.end) for s in skipped] == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [
        ("導航到最近的加油站", "导航到最近的加油站"),
        ("飛機著陸了，他看著窗外", "飞机着陆了，他看着窗外"),
        ("顯著的成果，著名的土著，名著", "显著的成果，著名的土著，名著"),
        ("頭髮和皇后", "头发和皇后"),
        ("乾隆皇帝住乾清宮，衣服乾了", "乾隆皇帝住乾清宫，衣服干了"),
        ("乾清宫", "乾清宫"),
        ("臺灣麵條裡面", "台湾面条里面"),
    ],
)
def test_simplified_characters(traditional, simplified):
    mapped = Simplify()(Mapped.of(traditional))
    assert mapped.text == simplified
    assert mapped.starts == list(range(len(traditional)))


@pytest.mark.parametrize(
    ("written", "stripped"),
    [
        ("**重点**和*强调*", "重点和强调"),
        ("# 标题", "标题"),
        ("- 一\n- 二", "一\n二"),
        ("> 引用", "引用"),
        ("[链接](http://a.com/x)", "链接"),
        ("![图](a.png)文", "图文"),
        ("`代码`和~~删除~~", "代码和删除"),
        ("<b>粗</b><br/>换行", "粗\n换行"),
        ("<p class='a'>段</p>", "\n段\n"),
        ("a &amp; b &lt; c", "a & b < c"),
        ("<!-- 注释 -->好", " 好"),
        ("<script>x()</script>好", " 好"),
        ("---\n好", "\n好"),
        ("3*4*5=60", "3*4*5=60"),
        ("a < b > c", "a < b > c"),
        ("file_name_here", "file_name_here"),
        ("2 * 3", "2 * 3"),
        ("- [x] 完成", "完成"),
    ],
)
def test_markup_is_stripped(written, stripped):
    assert markup.strip(Mapped.of(written)).text == stripped


@pytest.mark.parametrize(
    ("policy", "said", "reported"),
    [("name", "好，点赞，", []), ("silent", "好 ", []), ("skip", "好 ", ["👍🏽"])],
)
def test_emoji_policies(policy, said, reported):
    mapped, skipped = emoji.speak(Mapped.of("好👍🏽"), policy)
    assert mapped.text == said
    assert [s.text for s in skipped] == reported


@pytest.mark.parametrize("sign", ["👨‍👩‍👧", "🇨🇳", "❤️", "🏳️‍🌈", "☀️"])
def test_an_emoji_is_one_sign(sign):
    mapped, skipped = emoji.speak(Mapped.of(f"好{sign}吧"), "skip")
    assert [s.text for s in skipped] == [sign]
    assert mapped.text == "好 吧"


def test_keycaps_are_digits():
    assert emoji.speak(Mapped.of("按1️⃣"), "skip")[0].text == "按1"


@pytest.mark.parametrize(
    ("written", "text", "readings"),
    [
        ("行{hang2}不行", "行不行", {0: "hang2"}),
        ("去银行{yin2 hang2}", "去银行", {1: "yin2", 2: "hang2"}),
        ("女{nü3}", "女", {0: "nv3"}),
        ("好{hao3 hao3}", "好{hao3 hao3}", {}),
        ("好{xyz9}", "好{xyz9}", {}),
        ("json{a1}", "json{a1}", {}),
    ],
)
def test_inline_readings(written, text, readings):
    mapped = inline.apply(Mapped.of(written))
    assert (mapped.text, mapped.readings) == (text, readings)
