"""Numbers in Chinese words."""

DIGITS = "零一二三四五六七八九"
YAO_DIGITS = "零幺二三四五六七八九"
_UNITS = ("", "十", "百", "千")
_GROUPS = ("", "万", "亿", "万亿", "亿亿")
MAX_DIGITS = 4 * len(_GROUPS)


def digits(text: str, *, yao: bool = False) -> str:
    """Read digits one by one, `yao` with 幺 for one."""
    table = YAO_DIGITS if yao else DIGITS
    return "".join(table[ord(c) - 48] if "0" <= c <= "9" else c for c in text)


def _group(number: str, *, leading: bool) -> str:
    """Read four digits; 二 becomes 两 before 百 and 千 where it leads the number or its group."""
    out: list[str] = []
    pending_zero = False
    for i, c in enumerate(number):
        if c == "0":
            pending_zero = bool(out) or not leading
            continue
        if pending_zero:
            out.append("零")
        pending_zero = False
        unit = _UNITS[len(number) - 1 - i]
        digit = "两" if c == "2" and unit == "千" else DIGITS[int(c)]
        if c == "2" and unit == "百" and not out:
            digit = "两"
        out.append(digit + unit)
    return "".join(out)


def cardinal(text: str) -> str:
    """Read a whole number ("012" is twelve); too long a one is read digit by digit."""
    text = text.lstrip("0")
    if not text:
        return "零"
    if len(text) > MAX_DIGITS:
        return digits(text)
    first = len(text) % 4 or 4
    groups = [text[:first]] + [text[i : i + 4] for i in range(first, len(text), 4)]
    out: list[str] = []
    gap = False
    for i, group in enumerate(groups):
        name = _GROUPS[len(groups) - 1 - i]
        if not group.strip("0"):
            gap = True
            continue
        said = _group(group, leading=i == 0)
        if gap and not said.startswith("零"):
            said = "零" + said
        gap = False
        if said == "二" and name:
            said = "两"
        out.append(said + name)
    said = _merge_big("".join(out))
    return said[1:] if said.startswith("一十") else said


def _merge_big(said: str) -> str:
    """Say 万亿 once: 两万亿三千亿 is 两万三千亿."""
    return said.replace("万亿", "万", said.count("万亿") - 1) if said.count("万亿") > 1 else said


def decimal(whole: str, fraction: str) -> str:
    """Read a decimal number."""
    return f"{cardinal(whole)}点{digits(fraction)}"


def counted(text: str) -> str:
    """Read a whole number before a measure word: a plain two is 两."""
    return "两" if text.lstrip("0") == "2" else cardinal(text)
