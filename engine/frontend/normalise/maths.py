"""Sums, fractions, ratios, powers, Roman numerals."""

import re

from utterd.engine.frontend.chinese_numbers import cardinal, digits
from utterd.engine.frontend.mapped import Mapped, join
from utterd.engine.frontend.normalise.amounts import NUMBER, number, signed
from utterd.engine.frontend.normalise.rule import Rule, rule
from utterd.engine.frontend.normalise.units import UNITS

_OPERATORS = {
    "+": "加", "＋": "加", "-": "减", "−": "减", "–": "减", "×": "乘", "✕": "乘", "*": "乘", "÷": "除以", "=": "等于",
    "＝": "等于", "≠": "不等于", "!=": "不等于", "≈": "约等于", "≥": "大于等于", ">=": "大于等于", "≤": "小于等于",
    "<=": "小于等于", ">": "大于", "<": "小于", "＞": "大于", "＜": "小于", "±": "正负", "≡": "恒等于", "∝": "正比于", "∈": "属于",
    "→": "趋向", "==": "等于", ":": "比", "：": "比",
}  # fmt: skip
_COMPARED = re.compile(r"[=!<>]=|[=＝≠≈≥≤<>＞＜]")
_SIGNS = r"\d./A-Za-z()πθαβγΔ√∞²³⁴ⁿ+＋−×✕*÷=＝≠≈≥≤<>＞＜±≡∝∈!:：°-"
_EXPRESSION = (
    rf"(?<![\w.])(?:[{_SIGNS}]|(?<=\d),(?=\d\d\d))+(?: (?:[{_SIGNS}]|(?<=\d),(?=\d\d\d))+)*"
)
"""A run of what sums are written with; whether it is one is seen in `_sum`."""
_TOKEN = re.compile(r"[=!<>]=|[\d.,]+|[A-Za-z]+|.")
_POWERS = {
    "²": "平方",
    "³": "立方",
    "⁴": "四次方",
    "⁵": "五次方",
    "⁶": "六次方",
    "⁷": "七次方",
    "⁸": "八次方",
    "⁹": "九次方",
    "ⁿ": "n次方",
}
_SYMBOLS = {"π": "派", "α": "阿尔法", "β": "贝塔", "γ": "伽马", "δ": "德尔塔", "Δ": "德尔塔", "θ": "西塔", "λ": "拉姆达",
            "μ": "缪", "σ": "西格玛", "Σ": "西格玛", "∑": "求和", "φ": "斐", "ω": "欧米伽", "Ω": "欧米伽", "∞": "无穷大", "√": "根号", "∠": "角", "△": "三角形", "⊥": "垂直于", "∥": "平行于"}  # fmt: skip
_ROMAN = {"I": 1, "V": 5, "X": 10}
_GLYPHS = {
    "Ⅰ": 1,
    "Ⅱ": 2,
    "Ⅲ": 3,
    "Ⅳ": 4,
    "Ⅴ": 5,
    "Ⅵ": 6,
    "Ⅶ": 7,
    "Ⅷ": 8,
    "Ⅸ": 9,
    "Ⅹ": 10,
    "Ⅺ": 11,
    "Ⅻ": 12,
}
_VALID = r"(?:X{1,3}(?:IX|IV|V?I{0,3})|IX|IV|VI{0,3}|I{1,3})"
_CIRCLED = {chr(0x2460 + i): i + 1 for i in range(20)} | {chr(0x2776 + i): i + 1 for i in range(10)}
_KINDS = "期型级类章部卷代世区号度相节篇集册"


def _roman(text: str) -> int:
    total = 0
    for here, following in zip(text, [*text[1:], ""], strict=True):
        value = _ROMAN[here]
        total += -value if following and _ROMAN[following] > value else value
    return total


def _sum(match: re.Match[str], mapped: Mapped) -> Mapped | None:
    """Say an equation or comparison; what only looks like one stays as it is."""
    text = match.group()
    body = text.rstrip(".,:：!- (")
    compared = _COMPARED.search(body)
    if compared is None or not re.search(r"[\w)²³∞π]", body[: compared.start()]):
        return None
    if not re.search(r"[\w(√∞π]", body[compared.end() :]):
        return None
    tokens = _TOKEN.findall(body)
    if any(len(t) > 3 and t.isascii() and t.isalpha() for t in tokens):
        return None
    end = match.start() + len(body)
    said = mapped.whole(match.start(), end, _in_words(tokens))
    return join([said, mapped.piece(end, match.end())])


def _formula(match: re.Match[str], mapped: Mapped) -> str:
    return _in_words(_TOKEN.findall(match.group()))


def _in_words(tokens: list[str]) -> str:
    """Say the parts of a formula one after the other."""
    out: list[str] = []
    tokens = _divided(tokens)
    for n, part in enumerate(tokens):
        before = out[-1] if out else ""
        if part[0].isdecimal():
            out.append(number(part) if part.count(".") <= 1 else part)
        elif part in UNITS and n + 1 == len(tokens) and n and tokens[n - 1][0].isdecimal():
            out.append(UNITS[part])
        elif part in _OPERATORS and (part not in "-−" or _ends_term(before)):
            out.append(_OPERATORS[part])
        elif part in "-−":
            out.append("负")
        elif part.isalpha() and part.isascii():
            spaced = before[-1:].isascii() and before[-1:].isalpha()
            out.append((" " if spaced else "") + (" ".join(part) if part.isupper() else part))
        elif part in _POWERS:
            out.append(_POWERS[part])
        elif part in _SYMBOLS:
            out.append(_SYMBOLS[part])
        elif part == "°":
            out.append("度")
        elif part in "()" or "分之" in part:
            out.append(part)
    return "".join(out)


def _divided(tokens: list[str]) -> list[str]:
    """Write 20/5 as a division and 1/2 as the fraction it is."""
    out = list(tokens)
    for n in range(len(out) - 2):
        above, slash, below = out[n : n + 3]
        if slash != "/":
            continue
        whole = above.isdecimal() and below.isdecimal() and int(below) > 0
        if whole and int(above) < int(below):
            out[n : n + 3] = [f"{cardinal(below)}分之{cardinal(above)}", "", ""]
        else:
            out[n + 1] = "÷"
    return [part for part in out if part]


def _ends_term(before: str) -> bool:
    """A minus behind a term takes away, elsewhere it is a sign."""
    return bool(before) and before not in _OPERATORS.values() and before != "("


def _fraction(match: re.Match[str], mapped: Mapped) -> str | None:
    whole, above, below = match.group(1, 2, 3)
    if int(below) == 0:
        return None
    said = f"{cardinal(below)}分之{cardinal(above)}"
    return f"{cardinal(whole)}又{said}" if whole else said


def _ratio(match: re.Match[str], mapped: Mapped) -> str:
    return "比".join(number(part) for part in re.split(r"\s?[:：]\s?", match.group()))


def _power(match: re.Match[str], mapped: Mapped) -> str:
    base, exponent = match.group(1, 2)
    said = number(base) if base[0].isdecimal() else base
    if exponent in _POWERS:
        return said + "的" * base[0].isdecimal() + _POWERS[exponent]
    exponent = exponent.lstrip("^{").rstrip("}")
    return f"{said}的{signed(exponent[0], exponent[1:]) if exponent[0] in '-+' else number(exponent)}次方"


def _pixels(match: re.Match[str], mapped: Mapped) -> str:
    return "乘".join(digits(p) for p in match.groups())


def _by(match: re.Match[str], mapped: Mapped) -> str:
    return number(match.group(1)) + "乘"


def _glyph(match: re.Match[str], mapped: Mapped) -> str:
    return cardinal(str(_GLYPHS[match.group()]))


def _circled(match: re.Match[str], mapped: Mapped) -> str:
    opens = match.start() == 0 or mapped.text[match.start() - 1].isspace()
    return cardinal(str(_CIRCLED[match.group()])) + "、" * opens


_VULGAR = {
    "½": "二分之一",
    "⅓": "三分之一",
    "⅔": "三分之二",
    "¼": "四分之一",
    "¾": "四分之三",
    "⅕": "五分之一",
    "⅛": "八分之一",
    "⅜": "八分之三",
    "⅝": "八分之五",
    "⅞": "八分之七",
}


def _scientific(match: re.Match[str], mapped: Mapped) -> str:
    base, exponent = match.group(1, 2)
    return f"{number(base)}乘十的{signed(exponent[0], exponent[1:]) if exponent[0] in '-+' else number(exponent)}次方"


_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")


def _raised(match: re.Match[str], mapped: Mapped) -> str:
    base, exponent = match.group(1), match.group(2).translate(_SUPERSCRIPTS)
    said = number(base) if base[0].isdecimal() else base
    return f"{said}的{signed(exponent[0], exponent[1:]) if exponent[0] in '-+' else number(exponent)}次方"


def _vulgar(match: re.Match[str], mapped: Mapped) -> str:
    whole, sign = match.group(1, 2)
    return f"{cardinal(whole)}又{_VULGAR[sign]}" if whole else _VULGAR[sign]


SUMS: list[Rule] = [
    rule(rf"(\d*)([{''.join(_VULGAR)}])", _vulgar, near="".join(_VULGAR)),
    rule(rf"[{''.join(_GLYPHS)}]", _glyph, near="".join(_GLYPHS)),
    rule(rf"[{''.join(_CIRCLED)}]", _circled, near="".join(_CIRCLED)),
    rule(rf"(?<=第){_VALID}(?![A-Za-z])|(?<![A-Za-z]){_VALID}(?=[{_KINDS}])|(?<=[一-鿿])(?:I{{2,3}}|IV|VI{{1,3}}|IX|XI{{1,3}}|XIV|XVI{{0,3}})(?![A-Za-z])",
         lambda m, t: cardinal(str(_roman(m.group()))), near="IVX"),
    rule(r"(?<![\dA-Za-z.])(\d{3,5})\s?[xX×*✕]\s?(\d{3,5})(?![\d.]*\d|\s?[=+÷A-Za-z])", _pixels, near="xX×*✕"),
    rule(r"(?<![\dA-Za-z.])(\d+(?:\.\d+)?)\s?[xX×*✕]\s?(?=\d+(?:\.\d+)?(?![\d.]*\s?[=+÷]))", _by, near="xX×*✕"),
    rule(r"\s?(?:->|=>|<-|⇒|→)\s?(?=[\w一-鿿])", lambda m, t: "到", near=">-→⇒"),
    rule(r"(?<![\d.])(\d+)-(\d+)(?=等于|得)", lambda m, t: f"{number(m.group(1))}减{number(m.group(2))}", near="-"),
    rule(_EXPRESSION, _sum, near="=＝≠≈≥≤<>＞＜"),
]  # fmt: skip
"""Before the units get the text: what they would take apart."""

RULES: list[Rule] = [
    rule(r"(?<![\w.])(?:[\d.]+|[A-Za-z]²?|\([^()]*\))(?:\s?[+＋×÷±*]\s?(?:[\d.]+|[A-Za-z]²?(?![A-Za-z])|\([^()]*\)))+(?![A-Za-z\d])", _formula,
         near="+＋×÷±*"),
    rule(r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)[eE]([-+]?\d{1,3})(?![A-Za-z\d])", _scientific, near="eE"),
    rule(r"(\d+|(?<![A-Za-z])[A-Za-z])([⁻⁺][⁰¹²³⁴⁵⁶⁷⁸⁹]+|[⁰¹²³⁴⁵⁶⁷⁸⁹]{2,}|[⁰¹])", _raised, near="⁰¹²³⁴⁵⁶⁷⁸⁹"),
    rule(r"(\d+(?:\.\d+)?|(?<![A-Za-z])[A-Za-z]{1,2})(\^\{?[-+]?\d+\}?|[²³⁴⁵⁶⁷⁸⁹ⁿ])", _power, near="^²³⁴⁵⁶⁷⁸⁹ⁿ"),
    rule(r"(?<![\d/.A-Za-z])(?:(\d{1,3})[ 又])?(\d{1,4})/(\d{1,4})(?![\d/.A-Za-z])", _fraction, near="/"),
    rule(r"(?<![\d.])(?<!\d[:：])\d+(?:\.\d+)?(?:\s?[:：]\s?\d+(?:\.\d+)?)+(?![\d:：])", _ratio, near=":："),
    rule(rf"±\s?({NUMBER})", lambda m, t: "正负" + number(m.group(1)), near="±"),
    rule(rf"([≥≤≈><＞＜=])\s?({NUMBER})", lambda m, t: _OPERATORS[m.group(1)] + number(m.group(2)), near="≥≤≈><＞＜="),
    rule(r"√", lambda m, t: "根号", near="√"),
    rule(rf"[{''.join(_SYMBOLS)}]", lambda m, t: _SYMBOLS[m.group()], near="".join(_SYMBOLS)),
]  # fmt: skip
