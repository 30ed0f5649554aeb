"""Money, in both orders."""

import re
from decimal import Decimal

from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise.amounts import NUMBER, RANGE, money, of
from utterd.engine.frontend.normalise.rule import Rule, rule

_SYMBOLS = {
    "HK$": "港元", "US$": "美元", "NT$": "新台币", "A$": "澳元", "AU$": "澳元", "C$": "加元",
    "CA$": "加元", "S$": "新加坡元", "R$": "雷亚尔", "¥": "元", "￥": "元", "$": "美元", "＄": "美元",
    "€": "欧元", "£": "英镑", "￡": "英镑", "₩": "韩元", "₽": "卢布", "฿": "泰铢", "₹": "卢比",
    "₫": "越南盾", "₱": "比索", "¢": "美分",
}  # fmt: skip
_CODES = {
    "CNY": "人民币", "RMB": "人民币", "USD": "美元", "EUR": "欧元", "GBP": "英镑", "JPY": "日元",
    "HKD": "港元", "TWD": "新台币", "KRW": "韩元", "AUD": "澳元", "CAD": "加元", "SGD": "新加坡元",
    "CHF": "瑞士法郎", "RUB": "卢布", "THB": "泰铢", "INR": "卢比", "MOP": "澳门元", "BTC": "比特币",
}  # fmt: skip
_NAMES = {**_SYMBOLS, **_CODES}
_SYMBOL = "|".join(re.escape(s) for s in sorted(_SYMBOLS, key=len, reverse=True))
_CODE = "|".join(_CODES)
_FACTORS = {"k": 10**3, "K": 10**3, "m": 10**6, "M": 10**6, "b": 10**9, "B": 10**9}
_UNIT = r"(?P<scale>万亿|[万亿千百]+|[kKmMbBwW](?![A-Za-z]))?"


def _amount(text: str, scale: str | None) -> str:
    """Say an amount with its scale: 3.5M is 三百五十万, 2千 is 两千."""
    if scale in _FACTORS:
        value = Decimal(text.replace(",", "")) * _FACTORS[scale]
        return money(f"{value:f}")
    unit = "万" if scale in ("w", "W") else scale or ""
    return (of(text, unit or "元") if text == "2" else money(text)) + unit


def _before(match: re.Match[str], mapped: Mapped) -> str:
    name, low, high, scale = match.group("name", "low", "high", "scale")
    minus = "负" if match.group("minus") else ""
    said = f"{_amount(low, None)}到{_amount(high, scale)}" if high else _amount(low, scale)
    return minus + said + _NAMES[name]


def _behind(match: re.Match[str], mapped: Mapped) -> str:
    return _amount(match.group("low"), match.group("scale")) + _NAMES[match.group("name")]


def _plain(match: re.Match[str], mapped: Mapped) -> str | None:
    text = match.group(1)
    return money(text) if "." in text else None


def _per(match: re.Match[str], mapped: Mapped) -> str:
    return "每"


_SIGNS = "".join({name[0] for name in _NAMES} | {name[-1] for name in _SYMBOLS})

RULES: list[Rule] = [
    rule(rf"(?P<minus>[-−])?(?P<name>{_SYMBOL}|(?<![A-Za-z])(?:{_CODE}))\s?(?P<low>{NUMBER})"
         rf"(?:{RANGE}(?:{_SYMBOL})?(?P<high>{NUMBER}))?{_UNIT}(?:元|块钱)?", _before, near=_SIGNS),
    rule(rf"(?<![\d.,])(?P<low>{NUMBER}){_UNIT}\s?(?P<name>{_SYMBOL}|(?:{_CODE})(?![A-Za-z]))", _behind, near=_SIGNS),
    rule(rf"(?<![\d.])({NUMBER})(?=元|块|美元|欧元|英镑|港币|港元|日元|人民币)", _plain, near="."),
    rule(r"(?<=[元块角分])/(?=[一-鿿])", _per, near="/"),
]  # fmt: skip
