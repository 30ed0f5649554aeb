"""Numbers in Chinese words."""

DIGITS = "零一二三四五六七八九"
YAO_DIGITS = "零幺二三四五六七八九"
_UNITS = ("", "十", "百", "千")
MAX_DIGITS = 16


def digits(text: str, *, yao: bool = False) -> str:
    """Read digits one by one, `yao` with 幺 for one."""
    table = YAO_DIGITS if yao else DIGITS
    return "".join(table[ord(c) - 48] if "0" <= c <= "9" else c for c in text)


def _group(number: str) -> str:
    """Read up to four digits; 二 is 两 before 千, and before 百 where it leads."""
    out: list[str] = []
    gap = False
    for i, c in enumerate(number):
        if c == "0":
            gap = True
            continue
        if gap and out:
            out.append("零")
        gap = False
        unit = _UNITS[len(number) - 1 - i]
        two = c == "2" and (unit == "千" or (unit == "百" and not out))
        out.append(("两" if two else DIGITS[int(c)]) + unit)
    return "".join(out)


def cardinal(text: str) -> str:
    """Read a whole number ("012" is twelve); too long a one is read digit by digit."""
    text = text.lstrip("0")
    if not text:
        return "零"
    if len(text) > MAX_DIGITS:
        return digits(text)
    if len(text) > 8:
        # What stands above 亿 is a number of its own: 一万零一亿.
        return _with_rest(cardinal(text[:-8]), "亿", text[-8:])
    if len(text) > 4:
        return _with_rest(cardinal(text[:-4]), "万", text[-4:])
    said = _group(text)
    return said[1:] if said.startswith("一十") else said


def _with_rest(high: str, unit: str, low: str) -> str:
    high = "两" if high == "二" else high
    rest = low.lstrip("0")
    if not rest:
        return high + unit
    # Inside a number ten is 一十, and a gap is one 零.
    said = cardinal(rest)
    said = "一" + said if said.startswith("十") else said
    return high + unit + ("零" if len(rest) < len(low) else "") + said


def decimal(whole: str, fraction: str) -> str:
    """Read a decimal number."""
    return f"{cardinal(whole)}点{digits(fraction)}"


def counted(text: str) -> str:
    """Read a whole number before a measure word: a plain two is 两."""
    return "两" if text.lstrip("0") == "2" else cardinal(text)
