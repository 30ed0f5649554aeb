"""Numbers and signs of an English sentence as they are said."""

import re

from utterd.engine.frontend.english import numbers
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise import web
from utterd.engine.frontend.normalise.rule import Rule, apply, rule

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_CURRENCY = {
    "$": ("dollar", "cent"),
    "€": ("euro", "cent"),
    "£": ("pound", "pence"),
    "¥": ("yuan", "cent"),
    "￥": ("yuan", "cent"),
}
_UNITS = {
    "km/h": "kilometers per hour", "mph": "miles per hour", "km": "kilometers", "m": "meters", "cm": "centimeters", "mm": "millimeters",
    "mi": "miles", "ft": "feet", "in": "inches", "kg": "kilograms", "g": "grams", "mg": "milligrams", "lb": "pounds", "lbs": "pounds",
    "oz": "ounces", "L": "liters", "ml": "milliliters", "mL": "milliliters", "h": "hours", "hr": "hours", "min": "minutes",
    "s": "seconds", "sec": "seconds", "ms": "milliseconds", "GB": "gigabytes", "MB": "megabytes", "TB": "terabytes", "KB": "kilobytes",
    "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "W": "watts", "kW": "kilowatts", "kWh": "kilowatt hours",
    "V": "volts", "°C": "degrees Celsius", "℃": "degrees Celsius", "°F": "degrees Fahrenheit", "°": "degrees", "dB": "decibels", "m²": "square meters",
}  # fmt: skip
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec"
_MONTH_NAMES = dict(zip(["Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug", "Sep", "Sept", "Oct", "Nov", "Dec"],
                        ["January", "February", "March", "April", "June", "July", "August", "September", "September", "October", "November", "December"], strict=True))  # fmt: skip
_SHORT = {
    "Mr": "mister", "Mrs": "missus", "Ms": "miz", "Dr": "doctor", "St": "street", "Ave": "avenue", "Rd": "road", "Blvd": "boulevard",
    "vs": "versus", "etc": "etcetera", "approx": "approximately", "No": "number", "Prof": "professor", "Jr": "junior", "Sr": "senior", "Inc": "incorporated", "Ltd": "limited", "Co": "company", "dept": "department",
}  # fmt: skip
_SIGNS = {
    "&": " and ",
    "+": " plus ",
    "=": " equals ",
    "%": " percent",
    "@": " at ",
    "×": " times ",
    "÷": " divided by ",
    "<": " less than ",
    ">": " greater than ",
    "≥": " at least ",
    "≤": " at most ",
    "±": " plus or minus ",
    "#": " number ",
}


def _one(name: str, amount: str) -> str:
    if amount != "1":
        return name
    return {"feet": "foot", "inches": "inch", "hertz": "hertz"}.get(name) or re.sub(
        r"s( per|$| )", r"\1", name, count=1
    )


def _money(match: re.Match[str], mapped: Mapped) -> str:
    sign, amount, scale = match.group(1, 2, 3)
    major, minor = _CURRENCY[sign]
    whole, _, cents = amount.replace(",", "").partition(".")
    plural = "" if major == "yuan" else "s"
    if scale:
        return f"{numbers.decimal(amount)} {scale.strip()} {major}{plural}"
    said = f"{numbers.cardinal(whole)} {major}" + (plural if whole != "1" else "")
    if cents and int(cents[:2].ljust(2, "0")):
        value = str(int(cents[:2].ljust(2, "0")))
        said += f" and {numbers.cardinal(value)} {minor}" + (
            "s" if minor == "cent" and value != "1" else ""
        )
    return said


def _time(match: re.Match[str], mapped: Mapped) -> str | None:
    hour, minute, half = match.group(1, 2, 3)
    if int(hour) > 24 or int(minute or 0) > 59:
        return None
    said = numbers.cardinal(hour)
    if minute and int(minute):
        said += (" oh " if minute[0] == "0" else " ") + numbers.cardinal(minute)
    elif not half and minute:
        said += " o'clock"
    if half:
        said += f" {half[0].upper()} M"
    return said


def _unit(match: re.Match[str], mapped: Mapped) -> str:
    sign, amount, unit = match.group(1, 2, 3)
    return ("minus " if sign else "") + f"{numbers.decimal(amount)} {_one(_UNITS[unit], amount)}"


def _date(match: re.Match[str], mapped: Mapped) -> str:
    month, day, year = match.group(1, 2, 3)
    said = f"{_MONTH_NAMES.get(month, month)} {numbers.ordinal(day)}"
    return f"{said}, {numbers.year(year)}" if year else said


def _plain(match: re.Match[str], mapped: Mapped) -> str:
    text = match.group()
    before = mapped.text[max(0, match.start() - 1) : match.start()]
    lead = " " if before.isalpha() else ""
    tail = " " if mapped.text[match.end() : match.end() + 1].isalpha() else ""
    if text.isdecimal() and ((text[0] == "0" and len(text) > 1) or len(text) >= 7):
        return lead + numbers.digits(text) + tail
    if re.fullmatch(r"1[1-9]\d\d|20[0-4]\d", text):
        return lead + numbers.year(text) + tail
    if text.isdecimal() and len(text) == 3 and lead and not text.endswith("00"):
        return lead + numbers.digits(text) + tail
    return lead + numbers.decimal(text) + tail


def _fraction(match: re.Match[str], mapped: Mapped) -> str | None:
    above, below = match.group(1, 2)
    if below == "2":
        return "one half" if above == "1" else f"{numbers.cardinal(above)} halves"
    if int(below) < 2 or int(below) > 99:
        return None
    return f"{numbers.cardinal(above)} {numbers.ordinal(below)}" + ("s" if above != "1" else "")


RULES: list[Rule] = [
    *web.ENGLISH_RULES,
    rule(r"\b(?:[A-Z]\.){2,}(?=\s[a-z]|[,;:!?]|\s?$|\s[A-Z])", lambda m, t: m.group().replace(".", ""), near="."),
    rule(r"\b[Ww]i-[Ff]i\b", lambda m, t: "WiFi", near="-"),
    rule(r"(?<![\d-])(?:\d{3}-)?\d{3}-\d{4}(?![\d-])", lambda m, t: ", ".join(numbers.digits(p) for p in m.group().split("-")), near="-"),
    rule(r"\b(Mr|Mrs|Ms|Dr|Ave|Rd|Blvd|vs|etc|approx|Prof|Jr|Sr|Inc|Ltd|dept)\.(?=\s|,|$)", lambda m, t: _SHORT[m.group(1)], near="."),
    rule(r"\bNo\.\s?(?=\d)", lambda m, t: "number ", near="N"),
    rule(r"([$€£¥￥])\s?(\d[\d,]*(?:\.\d+)?)(\s(?:hundred|thousand|million|billion|trillion))?", _money, near="$€£¥￥"),
    rule(rf"\b({_MONTHS})\.?\s(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s((?:1\d|20)\d\d))?\b(?!:)", _date),
    rule(r"(?<![\d:])(\d{1,2}):(\d{2})(?::\d{2})?\s?([aApP]\.m\.|[aApP][mM]\b)?(?![\d:])", _time, near=":"),
    rule(r"(?<![\d:.])(\d{1,2})()\s?([aApP]\.m\.|[aApP][mM]\b)", _time, near="mM"),
    rule(r"(?<!\d)((?:1\d|20)\d0)s\b", lambda m, t: re.sub(r"y$", "ies", numbers.year(m.group(1)))),
    rule(r"\b(\d+)(?:st|nd|rd|th)\b", lambda m, t: numbers.ordinal(m.group(1))),
    rule(rf"(?<![\w.])([-−]?)({_NUMBER})\s?({'|'.join(re.escape(u) for u in sorted(_UNITS, key=len, reverse=True))})(?![A-Za-z0-9²])", _unit),
    rule(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?![\d/])", _fraction, near="/"),
    rule(r"(?<=\d)\s?[-–]\s?(?=\d)", lambda m, t: " to ", near="-–"),
    rule(r"(?<=\d)[xX](?=\d)", lambda m, t: " by ", near="xX"),
    rule(r"(?<![\w.])[-−](?=\d)", lambda m, t: "minus ", near="-−"),
    rule(r"(?<![\d.])(\d+(?:\.\d+){2,})", lambda m, t: " point ".join(numbers.cardinal(p) for p in m.group(1).split("."))),
    rule(_NUMBER, _plain),
    rule(r"\s?[&+=%@×÷<>≥≤±#]\s?", lambda m, t: _SIGNS[m.group().strip()] + ("" if m.group().strip() != "%" else " " * m.group().endswith(" ")),
         near="&+=%@×÷<>≥≤±#"),
    rule(r"(?<=[A-Za-z])[-–](?=[A-Za-z])", lambda m, t: " ", near="-–"),
]  # fmt: skip


def normalise(mapped: Mapped) -> Mapped:
    """Rewrite numbers and signs of an English sentence as they are said."""
    return apply(mapped, RULES)
