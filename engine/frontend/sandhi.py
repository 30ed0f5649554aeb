"""Tone sandhi: 一, 不, and third tones."""

import rjieba


def words(text: str) -> list[int]:
    """Return the lengths of the words of a run of Chinese."""
    return [len(w) for w in rjieba.cut(text)]


def apply(text: str, readings: list[str]) -> list[str]:
    """Return the spoken syllables of a run of Chinese."""
    spoken = list(readings)
    for i, c in enumerate(text):
        following = readings[i + 1][-1:] if i + 1 < len(text) else ""
        if c == "不" and readings[i] == "bu4":
            spoken[i] = "bu2" if following == "4" else "bu4"
        elif c == "一" and readings[i] == "yi1" and following:
            before = text[i - 1] if i else ""
            if (
                before
                and before in "第零一二三四五六七八九十点年月"
                or text[i + 1] in "零一二三四五六七八九月日号"
            ):
                continue
            spoken[i] = "yi2" if following == "4" else "yi4"
    at = 0
    for size in words(text):
        for i in range(at, at + size - 1):
            if spoken[i][-1:] == "3" and spoken[i + 1][-1:] == "3":
                spoken[i] = spoken[i][:-1] + "2"
        at += size
    for i in range(len(text) - 1):
        if spoken[i][-1:] == "3" and spoken[i + 1][-1:] == "3":
            spoken[i] = spoken[i][:-1] + "2"
    return spoken
