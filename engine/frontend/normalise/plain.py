"""What is left: numbers alone, and signs that are said."""

import re

from utterd.engine.frontend import words
from utterd.engine.frontend.chinese_numbers import DIGITS, cardinal, digits
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise.amounts import COUNTED, NUMBER, of, signed
from utterd.engine.frontend.normalise.rule import Rule, code, rule

_YEARLY = "款|届|赛季|财年|奥运|冬奥|世界杯|版|春晚|考研|高考|级(?!台)|年度|亚运|欧洲杯|车展|新款|Q[1-4一二三四]|上半年|下半年"


def _number(match: re.Match[str], mapped: Mapped) -> str | Mapped:
    text = match.group()
    following = mapped.text[match.end() : match.end() + 4].lstrip()
    if text[0] == "0" and len(text) > 1 and "." not in text:
        return code(mapped, match.start(), match.end())
    before = mapped.text[max(0, match.start() - 1) : match.start()]
    if before == "第":
        return cardinal(text) if "." not in text else of(text, "")
    if text == "2" and before and before in DIGITS[1:] + "十百千万两":
        return "二"
    return of(text, following)


def _list(match: re.Match[str], mapped: Mapped) -> str:
    return f"{match.group(1)}{cardinal(match.group(2))}、"


def _pair(match: re.Match[str], mapped: Mapped) -> str | None:
    """2、3个: two or three of them."""
    low, high = int(match.group(1)), int(match.group(2))
    return ("两" if low == 2 else DIGITS[low]) + DIGITS[high] if high == low + 1 else None


def _thousands(match: re.Match[str], mapped: Mapped) -> str:
    return {"w": "万", "k": "千"}[match.group(1)]


def _numbered(match: re.Match[str], mapped: Mapped) -> str:
    return f"第{cardinal(match.group(1))}"


def _between(match: re.Match[str], mapped: Mapped) -> str | None:
    """北京-上海: from one place to another."""
    left, right = words.split(match.group(1))[-1], words.split(match.group(2))[0]
    return f"{match.group(1)}到" if left.tag == right.tag == "ns" else None


RULES: list[Rule] = [
    rule(r"((?:^|\n)[ \t]*)[（(]?(\d{1,2})(?:[.．)）](?!\d)|、)\s*(?=\S)", _list, near=".．)）、"),
    rule(r"(?<![A-Za-z])(?:No\.?|NO\.?|№)\s?(\d+)", _numbered, near="N№"),
    rule(rf"(?<!\d)((?:19|20)\d\d)(?=\s?(?:{_YEARLY}))", lambda m, t: digits(m.group(1)), near="12"),
    rule(rf"(?<![\dA-Za-z一-鿿)）])([-−+])({NUMBER})", lambda m, t: signed(m.group(1), m.group(2)), near="-−+"),
    rule(rf"(?<=[是为达到于约至了在降升跌涨])([-−])({NUMBER})", lambda m, t: signed(m.group(1), m.group(2)), near="-−"),
    rule(rf"(?<![\d.、])([1-9])、([1-9])(?=个?(?:{'|'.join(COUNTED)}))(?!、)", _pair, near="、"),
    rule(r"(?<![\d.A-Za-z])(\d+)(?:st|nd|rd|th)(?![A-Za-z])", _numbered, near="sndrthN№"),
    rule(r"(?<=\d)([wk])(?![A-Za-z\d])", _thousands, near="wk"),
    rule(NUMBER, _number),
    rule(r"(?<=[零一二三四五六七八九十百千])°", lambda m, t: "度", near="°"),
    rule(r"(?<=[零一二三四五六七八九十百千万亿])\+(?!\w)", lambda m, t: "加", near="+"),
    rule(r"(?<=[一-鿿A-Za-z])\s?[&＆]\s?(?=[一-鿿A-Za-z])", lambda m, t: "和", near="&＆"),
    rule(r"(?<=[一-鿿])[×✕](?=[一-鿿])|(?<=米)[*xX](?=[零一二两三四五六七八九十百])", lambda m, t: "乘", near="×✕*xX"),
    rule(r"(?<=[他她你我它])/(?=[他她你我它])", lambda m, t: "或", near="/"),
    rule(r"(?<=[一-鿿])\s?/\s?(?=[一-鿿])", lambda m, t: "、", near="/"),
    rule(r"@(?=[\w一-鿿])", lambda m, t: "艾特", near="@"),
    rule(r"(?<=[一-鿿A-Za-z])\s?[+＋]\s?(?=[一-鿿A-Za-z])", lambda m, t: "加", near="+＋"),
    rule(r"(?<=[一-鿿A-Za-z])\s?[=＝]\s?(?=[一-鿿A-Za-z])", lambda m, t: "等于", near="=＝"),
    rule(r"([一-鿿]{2,6})[-–—](?=([一-鿿]{2,6}))", _between, near="-–—"),
    rule(r"(?<=[一-鿿])[-–](?=[一-鿿])", lambda m, t: "", near="-–"),
]  # fmt: skip
