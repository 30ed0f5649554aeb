"""Pinyin to the phonemes of Kokoro-82M v1.0.

The alphabet is that of misaki's Chinese path for v1.0: IPA with one arrow for the tone behind the
nucleus (→ ↗ ↓ ↘, none when neutral), ʦ ʨ ꭧ for the affricates.
"""

from functools import cache

INITIALS = {
    "b": "p", "c": "ʦʰ", "ch": "ꭧʰ", "d": "t", "f": "f", "g": "k", "h": "x", "j": "ʨ", "k": "kʰ",
    "l": "l", "m": "m", "n": "n", "p": "pʰ", "q": "ʨʰ", "r": "ɻ", "s": "s", "sh": "ʂ", "t": "tʰ",
    "x": "ɕ", "z": "ʦ", "zh": "ꭧ", "": "",
}  # fmt: skip

FINALS = {
    "a": "a0", "ai": "ai0", "an": "a0n", "ang": "a0ŋ", "ao": "au0", "e": "ɤ0", "ei": "ei0",
    "en": "ə0n", "eng": "ə0ŋ", "er": "ɚ0", "i": "i0", "ia": "ja0", "ian": "jɛ0n", "iang": "ja0ŋ",
    "iao": "jau0", "ie": "je0", "in": "i0n", "iu": "jou0", "ing": "i0ŋ", "iong": "jʊ0ŋ",
    "ong": "ʊ0ŋ", "ou": "ou0", "u": "u0", "ui": "wei0", "ua": "wa0", "uai": "wai0", "uan": "wa0n",
    "un": "wə0n", "uang": "wa0ŋ", "ueng": "wə0ŋ", "uo": "wo0", "o": "wo0", "v": "y0", "ve": "ɥe0",
    "van": "ɥɛ0n", "vn": "y0n", "ê": "ɛ0", "io": "jɔ0",
}  # fmt: skip

TONES = {"1": "→", "2": "↗", "3": "↓", "4": "↘", "5": ""}

_WHOLE = {
    "o": "ɔ0", "ê": "ɛ0", "er": "ɚ0", "yo": "jɔ0",
    "m": "m0", "n": "n0", "ng": "ŋ0", "hm": "hm0", "hng": "hŋ0",
}  # fmt: skip

_SPELLED = {
    "yi": "i", "ya": "ia", "yan": "ian", "yang": "iang", "yao": "iao", "ye": "ie", "yin": "in",
    "ying": "ing", "yong": "iong", "you": "iu", "yu": "v", "yue": "ve", "yuan": "van", "yun": "vn",
    "yai": "ai",
    "wu": "u", "wa": "ua", "wai": "uai", "wan": "uan", "wang": "uang", "wei": "ui", "wen": "un",
    "weng": "ueng", "wo": "uo", "wong": "ong",
}  # fmt: skip

ERHUA = {
    "a0": "a0ɻ", "ai0": "a0ɻ", "a0n": "a0ɻ", "a0ŋ": "a0ɻ", "au0": "au0ɻ", "ɤ0": "ɤ0ɻ",
    "ei0": "ə0ɻ", "ə0n": "ə0ɻ", "ə0ŋ": "ə0ɻ", "i0": "jə0ɻ", "jɛ0n": "ja0ɻ", "i0n": "jə0ɻ",
    "i0ŋ": "jə0ɻ", "ʊ0ŋ": "ʊ0ɻ", "jʊ0ŋ": "jʊ0ɻ", "wei0": "wə0ɻ", "wai0": "wa0ɻ", "wa0n": "wa0ɻ",
    "wə0n": "wə0ɻ", "wa0ŋ": "wa0ɻ", "ja0ŋ": "ja0ɻ", "y0": "ɥə0ɻ", "ɥɛ0n": "ɥa0ɻ", "y0n": "ɥə0ɻ",
}  # fmt: skip


def split(pinyin: str) -> tuple[str, str]:
    """Split a syllable without its tone into initial and final, both as FINALS spells them.

    Raises:
        ValueError: it is no syllable of Mandarin.
    """
    if pinyin in _SPELLED:
        return "", _SPELLED[pinyin]
    for size in (2, 1, 0):
        initial, final = pinyin[:size], pinyin[size:]
        if initial not in INITIALS:
            continue
        if initial in ("j", "q", "x") and final.startswith("u"):
            final = "v" + final[1:]
        if final == "ue" and initial in ("l", "n"):
            final = "ve"
        if final in FINALS and len(initial) == size:
            return initial, final
    raise ValueError(f"no syllable of Mandarin: {pinyin!r}")


@cache
def syllable(pinyin: str) -> str:
    """Return the phonemes of a syllable such as `lv4` or, with erhua, `dianr3`.

    Raises:
        ValueError: it is no syllable of Mandarin with a tone 1 to 5.
    """
    base, tone = pinyin[:-1], pinyin[-1:]
    if tone not in TONES:
        raise ValueError(f"no tone from 1 to 5 in {pinyin!r}")
    if base in _WHOLE:
        return _WHOLE[base].replace("0", TONES[tone])
    erhua = base.endswith("r") and base != "er"
    if erhua and base[:-1] in _WHOLE:
        return _WHOLE[base[:-1]].replace("0", TONES[tone]) + "ɻ"
    initial, final = split(base[:-1] if erhua else base)
    if final == "i" and initial in ("zh", "ch", "sh", "r", "z", "c", "s"):
        body = "ɨ0"
        if erhua:
            body = "ə0ɻ"
    else:
        body = FINALS[final]
        if erhua:
            body = ERHUA.get(body, body + "ɻ")
    return INITIALS[initial] + body.replace("0", TONES[tone])


def is_syllable(pinyin: str) -> bool:
    """Tell whether `pinyin` is a syllable with its tone that can be spoken."""
    try:
        syllable(pinyin)
    except ValueError:
        return False
    return True
