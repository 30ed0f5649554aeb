"""Numbers in English words."""

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_GROUPS = ("", " thousand", " million", " billion", " trillion")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip


def digits(text: str) -> str:
    """Read digit by digit; nought is "oh" between others, as in telephone numbers."""
    return " ".join("oh" if c == "0" else _ONES[int(c)] for c in text)


def _below_thousand(number: int) -> str:
    out = []
    if number >= 100:
        out.append(f"{_ONES[number // 100]} hundred")
        number %= 100
    if number >= 20:
        out.append(_TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else ""))
    elif number:
        out.append(_ONES[number])
    return " ".join(out)


def cardinal(text: str) -> str:
    """Read a whole number; more than fifteen digits are read one by one."""
    text = text.lstrip("0")
    if not text:
        return "zero"
    if len(text) > 15:
        return digits(text)
    number = int(text)
    parts = []
    for name in _GROUPS:
        number, part = divmod(number, 1000)
        if part:
            parts.append(_below_thousand(part) + name)
        if not number:
            break
    return " ".join(reversed(parts))


def ordinal(text: str) -> str:
    """Read a number as a rank: 21 is twenty first."""
    said = cardinal(text)
    head, _, last = said.rpartition(" ")
    if last in _ORDINALS:
        last = _ORDINALS[last]
    elif last.endswith("y"):
        last = last[:-1] + "ieth"
    else:
        last += "th"
    return f"{head} {last}".strip()


def decimal(text: str) -> str:
    """Read a number that may have commas and a fraction."""
    whole, dot, fraction = text.replace(",", "").partition(".")
    said = cardinal(whole)
    if dot:
        said += " point " + " ".join(_ONES[int(c)] for c in fraction)
    return said


def year(text: str) -> str:
    """Read a year: 1998 is nineteen ninety eight, 2005 two thousand five."""
    century, rest = text[:2], text[2:]
    if text[1:3] == "00":
        return cardinal(text)
    if rest == "00":
        return f"{cardinal(century)} hundred"
    if rest[0] == "0":
        return f"{cardinal(century)} oh {_ONES[int(rest[1])]}"
    return f"{cardinal(century)} {cardinal(rest)}"
