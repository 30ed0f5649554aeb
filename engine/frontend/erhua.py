"""Syllables of a sentence: one a character, except where 儿 melts into the one before it."""

from collections.abc import Sequence
from dataclasses import dataclass

from utterd.engine.frontend.words import Token

# 儿 behind these is a child (or part of a name), not a suffix.
_CHILD_AFTER = frozenset("女婴幼孤少男胎健宠弃产生育妻孙侄患死院乳养吾犬童病")
_CHILD_WORDS = frozenset(
    [
        "小儿",
        "混血儿",
        "幸运儿",
        "新生儿",
        "早产儿",
        "低能儿",
        "弄潮儿",
        "畸形儿",
        "私生儿",
        "试管婴儿",
        "大儿",
        "二儿",
        "三儿",
        "我儿",
        "中华儿",
        "好男儿",
        "流浪儿",
        "连体儿",
        "巨大儿",
        "足月儿",
        "鸟儿歌",
        "普济方",
        "齐齐哈儿",
        "海拉儿",
    ]
)
_CHILD_BEFORE = frozenset("子童女孙媳科歌戏茶媳")
_MELTS_BEFORE = frozenset("这那哪会点事玩味劲块样份活今明昨后前")


@dataclass(frozen=True, slots=True)
class Unit:
    """A syllable: characters `start` to `end` of the sentence and their dictionary reading."""

    start: int
    end: int
    text: str
    pinyin: str


def units(
    text: str, readings: Sequence[str], tokens: Sequence[Token], forced: dict[int, str]
) -> list[Unit]:
    """Return the syllables of a sentence in order; `readings` is "" for what is no Chinese."""
    found: list[Unit] = []
    suffixes = _suffixes(text, readings, tokens, forced) if "儿" in text else frozenset()
    for i, pinyin in enumerate(readings):
        if not pinyin:
            continue
        if i in suffixes:
            before = found.pop()
            reading = f"{before.pinyin[:-1]}r{before.pinyin[-1]}"
            found.append(Unit(before.start, i + 1, before.text + text[i], reading))
        else:
            found.append(Unit(i, i + 1, text[i], pinyin))
    return found


def _suffixes(
    text: str, readings: Sequence[str], tokens: Sequence[Token], forced: dict[int, str]
) -> frozenset[int]:
    melted = set()
    for token in tokens:
        word = text[token.start : token.end]
        for i in range(token.start, token.end):
            if text[i] != "儿" or i == 0 or i in forced or not readings[i - 1]:
                continue
            before, after = text[i - 1], text[i + 1 : i + 2]
            if readings[i - 1][-2:-1] == "r" or before == "儿":
                continue
            if before in _MELTS_BEFORE and (after not in _CHILD_BEFORE or not after):
                melted.add(i)
                continue
            if before in _CHILD_AFTER or word in _CHILD_WORDS or token.tag.startswith("nr"):
                continue
            if token.start == i and (token.end > i + 1 or (after in _CHILD_BEFORE and after)):
                continue
            if i + 1 < token.end and after in _CHILD_BEFORE:
                continue
            if token.start == i and not _noun_before(tokens, i):
                continue
            melted.add(i)
    return frozenset(melted)


def _noun_before(tokens: Sequence[Token], i: int) -> bool:
    """A lone 儿 is a suffix of the word it stands behind; behind 的 or a pause it is a child."""
    return any(t.end == i and t.tag[:1] in "nvaqmfrtsdzib" for t in tokens)
