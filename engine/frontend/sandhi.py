"""Tone sandhi: 一, 不, third tones, neutral tones of reduplicated verbs."""

from collections.abc import Sequence
from functools import cache

from utterd.engine.frontend.data_files import read_lines
from utterd.engine.frontend.erhua import Unit
from utterd.engine.frontend.words import Token

_DIGITS = frozenset("零一二三四五六七八九幺两")
_ORDINAL_BEFORE = frozenset("第初")
_ROW = (
    "月",
    "号",
    "楼",
    "级",
    "班",
    "环",
    "中学",
    "年级",
    "单元",
    "等奖",
    "等座",
    "等舱",
    "号线",
    "线城",
    "把手",
    "区",
    "队",
    "营",
    "团长",
)
_COUNT_AFTER_ROW = ("级", "班", "区", "队")
_LEXICAL = frozenset(
    (
        "统一",
        "唯一",
        "惟一",
        "单一",
        "专一",
        "独一",
        "逐一",
        "之一",
        "周一",
        "期一",
        "拜一",
        "初一",
        "高一",
        "大一",
        "其一",
        "归一",
        "如一",
        "合一",
        "划一",
        "万一",
    )
)
"""Words that end in 一 and keep its tone, whatever follows."""
_IDIOMS = frozenset(["一五一十", "一一", "说一不二", "数一数二", "不管三七二十一"])
"""Words in which 一 is a number and keeps its tone."""


def apply(text: str, units: Sequence[Unit], tokens: Sequence[Token]) -> list[str]:
    """Return the spoken form of each syllable of a sentence."""
    spoken = [unit.pinyin for unit in units]
    words = _word_of(tokens)
    for i, unit in enumerate(units):
        if unit.text == "一" and unit.pinyin == "yi1":
            spoken[i] = _yi(text, units, i, words, tokens)
        elif unit.text == "不" and unit.pinyin == "bu4":
            spoken[i] = _bu(units, i, words, tokens)
    _light(text, units, spoken)
    _repeat(units, spoken)
    _third_tones(units, spoken, words)
    return spoken


def _word_of(tokens: Sequence[Token]) -> list[int]:
    index: list[int] = []
    for n, token in enumerate(tokens):
        index += [n] * (token.end - token.start)
    return index


def _next(units: Sequence[Unit], i: int) -> Unit | None:
    """Return the syllable right behind number `i`, None at a pause."""
    if i + 1 < len(units) and units[i + 1].start == units[i].end:
        return units[i + 1]
    return None


def _before(units: Sequence[Unit], i: int) -> Unit | None:
    return units[i - 1] if i and units[i - 1].end == units[i].start else None


def _yi(
    text: str, units: Sequence[Unit], i: int, words: Sequence[int], tokens: Sequence[Token]
) -> str:
    following, before = _next(units, i), _before(units, i)
    if following is None:
        return "yi1"
    left = before.text if before else ""
    at = units[i].start
    if not left and at and text[at - 1].isascii() and text[at - 1].isalnum():
        # The number of a name: D1口, V1.
        return "yi1"
    if _numeral(text, units[i].start, left, following.text):
        return "yi1"
    token = tokens[words[units[i].start]]
    if text[token.start : token.end] in _IDIOMS:
        return "yi1"
    if left and left == following.text and left not in _DIGITS:
        return "yi5"
    earlier = text[at - 2] if at >= 2 else ""
    if left == "一":
        # 一一列举, but 统一一下.
        return "yi1" if earlier + "一" not in _LEXICAL else _before_tone(following)
    if following.text in "的地得了吗呢吧啊":
        return "yi1"
    counts = (left == "万" and following.text in "千百十") or (
        left in "高大" and following.text in "点些下"
    )
    if left + "一" in _LEXICAL and not counts and earlier != "一":
        return "yi1"
    if following.text == "一":
        return "yi1"
    ahead = text[units[i].end : units[i].end + 2]
    if ahead.startswith(_ROW) and not _counts(text, units[i].end, left, ahead):
        return "yi1"
    return _before_tone(following)


def _before_tone(following: Unit) -> str:
    return "yi2" if following.pinyin[-1] in "45" else "yi4"


def _numeral(text: str, at: int, left: str, right: str) -> bool:
    """Tell whether 一 is a digit among others or ends a number: 二十一, 一九四五, 三点一."""
    if left in _ORDINAL_BEFORE:
        return True
    if right in _DIGITS and right != "两":
        return True
    if left == "月" and right in "日号":
        return True
    if left == "一" and at >= 2 and text[at - 2] in _DIGITS:
        return True
    if left in ("十", "零") and right not in "百千万亿":
        return True
    if left in _DIGITS and left != "一" and right not in "十百千万亿个点":
        return True
    if (
        left == "点"
        and at >= 2
        and text[at - 2] in "零一二三四五六七八九十百"
        and right not in "十刻"
    ):
        return True
    return right == "十" and left in ("百", "零", "千")


def _counts(text: str, at: int, left: str, ahead: str) -> bool:
    """一级 names a row, but 这一级 and 一班人 count."""
    if ahead[0] == "月":
        return False
    if left in ("这", "那", "每", "另", "某", "哪", "同", "上", "下"):
        return True
    return ahead[0] in _COUNT_AFTER_ROW and text[at + 1 : at + 2] in ("人", "域", "又")


def _bu(units: Sequence[Unit], i: int, words: Sequence[int], tokens: Sequence[Token]) -> str:
    following, before = _next(units, i), _before(units, i)
    if following is None:
        return "bu4"
    if before is not None:
        counted = i >= 2 and units[i - 2].text == "一"
        if before.text == following.text and not counted:
            return "bu5"
        if before.text + following.text in _ASKED:
            return "bu5"
        if before.text + "不" + following.text in _POTENTIAL or (
            following.text in _RESULTS and _verb_like(before, words, tokens)
        ):
            return "bu5"
    return "bu2" if following.pinyin[-1] == "4" else "bu4"


def _verb_like(before: Unit, words: Sequence[int], tokens: Sequence[Token]) -> bool:
    """A verb of one syllable, or the head of a word such as 看不见."""
    token = tokens[words[before.start]]
    if token.end > before.end:
        return token.end - token.start == 3 and token.start == before.start
    return token.tag.startswith("v") and before.end - token.start <= 1


_ASKED = frozenset(
    [
        "可以",
        "知道",
        "喜欢",
        "愿意",
        "应该",
        "需要",
        "高兴",
        "认识",
        "清楚",
        "方便",
        "明白",
        "满意",
        "舒服",
        "合适",
        "介意",
    ]
)
_RESULTS = frozenset("了见到懂完动起着清住开上下来去出得成及好掉过")
_POTENTIAL = frozenset(
    [
        "对不起",
        "了不起",
        "差不多",
        "来不及",
        "受不了",
        "看不见",
        "听不见",
        "看不懂",
        "听不懂",
        "想不到",
        "找不到",
        "买不到",
        "买不起",
        "看不起",
        "吃不下",
        "忍不住",
        "禁不住",
        "靠不住",
        "巴不得",
        "恨不得",
        "舍不得",
        "怪不得",
        "说不定",
        "要不得",
        "由不得",
        "顾不上",
        "赶不上",
        "用不着",
        "大不了",
        "了不得",
        "数不清",
        "说不清",
        "分不清",
        "记不住",
        "睡不着",
        "少不了",
        "免不了",
        "忘不了",
        "进不去",
        "出不来",
        "回不来",
        "打不开",
        "开不了",
        "动不了",
    ]
)


@cache
def _light_words() -> dict[str, tuple[int, ...]]:
    """Return the words with neutral syllables and the places of these."""
    found = {}
    for line in read_lines("phrases_neutral.tsv"):
        word, _, readings = line.partition("\t")
        places = tuple(i for i, r in enumerate(readings.split(" ")) if r.endswith("5"))
        if places:
            found[word] = places
    return found


def _light(text: str, units: Sequence[Unit], spoken: list[str]) -> None:
    """Say the neutral syllables of common words lightly: 客气 kèqi."""
    light = _light_words()
    for i, unit in enumerate(units):
        for size in (2, 3):
            word = text[unit.start : unit.start + size]
            places = light.get(word)
            if places is None or i + size > len(units):
                continue
            if units[i + size - 1].end != unit.start + size:
                continue
            if word in _WHOLE_WAY and unit.start and text[unit.start - 1] in "一半这":
                continue
            for place in places:
                spoken[i + place] = spoken[i + place][:-1] + "5"


_WHOLE_WAY = frozenset(("路上", "天上", "夜里", "手上"))


def _repeat(units: Sequence[Unit], spoken: list[str]) -> None:
    """Say the second of a doubled third-tone verb lightly: 想想 xiáng xiang."""
    for i in range(len(units) - 1):
        pair = units[i].text + units[i + 1].text
        if pair in _DOUBLED and units[i + 1].start == units[i].end:
            spoken[i + 1] = spoken[i + 1][:-1] + "5"
            if spoken[i][-1] == "3":
                spoken[i] = spoken[i][:-1] + "2"


_DOUBLED = frozenset(
    [
        "看看",
        "想想",
        "试试",
        "等等",
        "走走",
        "听听",
        "说说",
        "问问",
        "找找",
        "查查",
        "聊聊",
        "玩玩",
        "坐坐",
        "歇歇",
        "尝尝",
        "逛逛",
        "讲讲",
        "谈谈",
        "写写",
        "读读",
        "洗洗",
        "擦擦",
        "数数",
        "猜猜",
        "帮帮",
        "管管",
        "瞧瞧",
        "谢谢",
        "摸摸",
        "动动",
        "跑跑",
        "散散",
        "改改",
        "练练",
        "学学",
        "教教",
        "唱唱",
        "比比",
        "量量",
    ]
)


def _third_tones(units: Sequence[Unit], spoken: list[str], words: Sequence[int]) -> None:
    """Inside words first, then from left to right across them."""
    n = len(units)
    at = 0
    while at < n:
        end = at + 1
        while (
            end < n
            and units[end].start == units[end - 1].end
            and (words[units[end].start] == words[units[at].start])
        ):
            end += 1
        _in_word(units, spoken, at, end)
        at = end
    for i in range(n - 1):
        if spoken[i][-1] == "3" and spoken[i + 1][-1] == "3" and units[i + 1].start == units[i].end:
            spoken[i] = spoken[i][:-1] + "2"


_HEADS = frozenset("小老纸好很")
"""Before a word of two third tones these are a word of their own: 小老虎 is xiǎo láohǔ."""


def _in_word(units: Sequence[Unit], spoken: list[str], start: int, end: int) -> None:
    if (
        end - start == 3
        and units[start].text in _HEADS
        and all(s[-1] == "3" for s in spoken[start:end])
    ):
        start += 1
    for i in range(start, end - 1):
        if spoken[i][-1] == "3" and spoken[i + 1][-1] == "3":
            spoken[i] = spoken[i][:-1] + "2"
