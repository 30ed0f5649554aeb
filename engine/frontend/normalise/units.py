"""Quantities with units: ranges, percent, temperatures, speeds, squares."""

import re

from utterd.engine.frontend.chinese_numbers import cardinal
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise.amounts import NUMBER, RANGE, number, of, signed
from utterd.engine.frontend.normalise.rule import Rule, rule

UNITS = {
    "km²": "平方千米", "km2": "平方千米", "cm²": "平方厘米", "cm2": "平方厘米", "mm²": "平方毫米",
    "mm2": "平方毫米", "dm²": "平方分米", "m²": "平方米", "m2": "平方米", "㎡": "平方米", "m³": "立方米",
    "m3": "立方米", "㎥": "立方米", "cm³": "立方厘米", "cm3": "立方厘米", "mm³": "立方毫米", "dm³": "立方分米",
    "ft²": "平方英尺", "㎞": "公里", "㎝": "厘米", "㎜": "毫米", "㎏": "千克", "㎎": "毫克", "㏄": "毫升",
    "km": "公里", "KM": "公里", "Km": "公里", "cm": "厘米", "CM": "厘米", "mm": "毫米", "MM": "毫米", "dm": "分米",
    "μm": "微米", "um": "微米", "µm": "微米", "nm": "纳米", "m": "米", "mi": "英里", "ft": "英尺", "yd": "码",
    "inch": "英寸", "in": "英寸", "nmi": "海里", "kg": "千克", "KG": "千克", "Kg": "千克", "mg": "毫克",
    "μg": "微克", "ug": "微克", "µg": "微克", "g": "克", "t": "吨", "lb": "磅", "lbs": "磅", "oz": "盎司",
    "L": "升", "l": "升", "mL": "毫升", "ml": "毫升", "ML": "毫升", "dL": "分升", "μL": "微升", "cc": "毫升", "gal": "加仑",
    "h": "小时", "hr": "小时", "hrs": "小时", "min": "分钟", "mins": "分钟", "s": "秒", "sec": "秒", "ms": "毫秒",
    "μs": "微秒", "us": "微秒", "ns": "纳秒", "V": "伏", "kV": "千伏", "mV": "毫伏", "mA": "毫安", "W": "瓦", "kW": "千瓦",
    "KW": "千瓦", "MW": "兆瓦", "GW": "吉瓦", "mW": "毫瓦", "kWh": "千瓦时", "KWh": "千瓦时", "kwh": "千瓦时",
    "Wh": "瓦时", "mAh": "毫安时", "mah": "毫安时", "Ah": "安时", "Ω": "欧姆", "kΩ": "千欧", "MΩ": "兆欧",
    "Hz": "赫兹", "HZ": "赫兹", "hz": "赫兹", "kHz": "千赫兹", "KHz": "千赫兹", "MHz": "兆赫兹", "GHz": "吉赫兹",
    "dB": "分贝", "db": "分贝", "Pa": "帕", "hPa": "百帕", "kPa": "千帕", "MPa": "兆帕", "bar": "巴", "Bar": "巴",
    "psi": "磅每平方英寸", "J": "焦", "kJ": "千焦", "MJ": "兆焦", "cal": "卡", "kcal": "千卡", "Kcal": "千卡", "N": "牛",
    "kN": "千牛", "N·m": "牛米", "N.m": "牛米", "Nm": "牛米", "lm": "流明", "lx": "勒克斯", "cd": "坎德拉", "mol": "摩尔",
    "rpm": "转每分", "mph": "英里每小时", "kph": "公里每小时", "bps": "比特每秒", "kbps": "千比特每秒", "Kbps": "千比特每秒",
    "Mbps": "兆比特每秒", "Gbps": "吉比特每秒", "fps": "帧每秒", "FPS": "帧每秒", "ha": "公顷", "hp": "马力", "ppm": "ppm",
    "MB": "兆", "px": "像素", "dpi": "dpi", "°": "度", "℃": "摄氏度", "°C": "度", "ºC": "度", "℉": "华氏度", "°F": "华氏度",
}  # fmt: skip
PER = {
    "h": "小时", "hr": "小时", "s": "秒", "min": "分钟", "d": "天", "m²": "平方米", "m2": "平方米", "m³": "立方米",
    "m3": "立方米", "kg": "千克", "g": "克", "L": "升", "l": "升", "mL": "毫升", "ml": "毫升", "km": "公里", "km²": "平方千米",
    "cm²": "平方厘米", "cm³": "立方厘米", "cm3": "立方厘米", "dL": "分升", "mol": "摩尔", "m": "米", "s²": "平方秒",
    "s2": "平方秒", "t": "吨", "100km": "百公里", "100公里": "百公里", "百公里": "百公里",
}  # fmt: skip


def _alternatives(table: dict[str, str]) -> str:
    return "|".join(re.escape(k) for k in sorted(table, key=len, reverse=True))


_UNIT = _alternatives(UNITS)
_NEXT = r"(?![A-Za-z0-9²³])"
_HAN = r"[一-鿿]"


def _of(text: str, unit: str) -> str:
    return of(text, unit) if text == "2" else number(text)


def _cold(sign: str, text: str, unit: str) -> str:
    if sign and unit.endswith("度"):
        return "零下" + number(text)
    return signed(sign, text) if sign else _of(text, unit)


def _quantity(match: re.Match[str], mapped: Mapped) -> str | None:
    sign, low, high_sign, high = match.group("sign", "low", "sign2", "high")
    unit, per = match.group("unit", "per")
    if (
        per is None
        and unit == "m"
        and "." not in low
        and mapped.text[match.end() : match.end() + 1] == "'"
    ):
        return None
    name = UNITS[unit]
    if name == "毫升" and unit == "cc" and mapped.text[match.end() : match.end() + 1].isalpha():
        return None
    said = _cold(sign or "", low, name)
    if high:
        said += "到" + _cold(high_sign or "", high, name)
    if per:
        if per in ("s²", "s2"):
            return f"{said}{name}每二次方秒"
        return f"每{PER[per]}{said}{name}"
    return said + name


def _both(match: re.Match[str], mapped: Mapped) -> str:
    """A range with the unit at both ends: 10cm-20cm, -10°C~5°C."""
    unit = UNITS[match.group("unit")]
    second = UNITS[match.group("unit2")]
    return (
        _cold(match.group("sign") or "", match.group("low"), unit) + unit + "到"
        + _cold(match.group("sign2") or "", match.group("high"), second) + second
    )  # fmt: skip


def _percent(match: re.Match[str], mapped: Mapped) -> str:
    sign, low, mark, high_sign, high, sign3 = match.group(
        "sign", "low", "mark", "sign2", "high", "end"
    )
    name = {"%": "百分之", "％": "百分之", "‰": "千分之", "‱": "万分之"}[sign3]
    if "." in low:
        low = low.rstrip("0").rstrip(".")
    said = name + ("百" if low == "100" and not sign else signed(sign or "", low).replace("正", ""))
    if high:
        said += "到" + (name if mark else "") + signed(high_sign or "", high).replace("正", "")
    return said


def _degrees(match: re.Match[str], mapped: Mapped) -> str:
    degrees, minutes, seconds = match.group(1, 2, 3)
    said = f"{number(degrees)}度{number(minutes)}分"
    return said + (f"{number(seconds)}秒" if seconds else "")


def _range(match: re.Match[str], mapped: Mapped) -> str | None:
    low, high = match.group("low", "high")
    behind = mapped.text[match.end() :]
    sign = match.group("sign") or ""
    if len(low) > 4 and len(high) > 4 and "." not in low and low[0] == "0":
        return None
    cold = behind.startswith(("度", "摄氏度"))
    first = (
        _cold(sign, low, "度") if cold and sign else signed(sign, low) if sign else of(low, behind)
    )
    second_sign = match.group("sign2") or ""
    second = _cold(second_sign, high, "度") if second_sign else number(high)
    if high == "2":
        second = of(high, behind)
    return f"{first}到{second}"


def _chinese_range(match: re.Match[str], mapped: Mapped) -> str:
    """A range with a Chinese unit at both ends: 5公里-10公里."""
    return match.group(1) + "到"


def _below(match: re.Match[str], mapped: Mapped) -> str:
    return "零下" + number(match.group(1))


def _times(match: re.Match[str], mapped: Mapped) -> str:
    return "每" + {"h": "小时", "s": "秒"}.get(match.group(1), match.group(1))


_FIRST = "".join({unit[0] for unit in UNITS})
_DASHES = "-~～—–－−∼〜"

RULES: list[Rule] = [
    rule(r"(?<![\dA-Za-z])(\d{1,2})W-?(\d{2})(?![\dA-Za-z])", lambda m, t: f"{number(m.group(1))}W{number(m.group(2))}", near="W"),
    rule(r"(?<=\d)#(?=[一-鿿])", lambda m, t: "号", near="#"),
    rule(r"(?<=[一二两三四五\d])[★☆](?![★☆])", lambda m, t: "星", near="★☆"),
    rule(r"(?<=[天次度人个升斤克米里])/(?=[月天年周次日人季])", lambda m, t: "每", near="/"),
    rule(rf"(?<![\d.])(?P<sign>(?<![\dA-Za-z一-鿿])[-−+]|(?<=[一-鿿])[-−+])?(?P<low>{NUMBER})(?P<mark>[%％])?"
         rf"(?:{RANGE}(?P<sign2>[-−+])?(?P<high>{NUMBER}))?(?P<end>[%％‰‱])", _percent, near="%％‰‱"),
    rule(r"(\d+(?:\.\d+)?)°\s?(\d+(?:\.\d+)?)[′'’分]\s?(?:(\d+(?:\.\d+)?)[″\"”秒])?", _degrees, near="°"),
    rule(rf"(?<![\d.A-Za-z])(?P<sign>[-−])?(?P<low>{NUMBER})\s?(?P<unit>{_UNIT}){RANGE}(?P<sign2>[-−])?(?P<high>{NUMBER})\s?(?P<unit2>{_UNIT}){_NEXT}",
         _both, near=_FIRST),
    rule(rf"(?<![\d.])(?<![A-Za-z])(?P<sign>(?<![\dA-Za-z])[-−])?(?P<low>{NUMBER})(?:{RANGE}(?P<sign2>[-−])?(?P<high>{NUMBER}))?"
         rf"\s?(?P<unit>{_UNIT})(?:/(?P<per>{_alternatives(PER)}))?{_NEXT}", _quantity, near=_FIRST),
    rule(rf"(?<=[0-9一-鿿])/({'|'.join(['h', 's'])})(?![A-Za-z])", _times, near="/"),
    rule(rf"(?<![\d.A-Za-z-])(\d+(?:\.\d+)?\s?(?:公里|千米|米|厘米|毫米|公斤|千克|克|吨|斤|元|块|万|亿|天|小时|分钟|秒|岁|度|层|楼|次|人|个|年|月|日|号|点|分|时)){RANGE}(?=\d)",
         _chinese_range, near=_DASHES),
    rule(rf"(?<![\d.A-Za-z/-])(?P<sign>(?<![\dA-Za-z])[-−])?(?P<low>{NUMBER}){RANGE}(?P<sign2>[-−])?(?P<high>{NUMBER})(?![\d.]*\d|[-~/:A-Za-z=+×*÷])",
         _range, near=_DASHES),
    rule(rf"(?<![\dA-Za-z.])[-−]({NUMBER})(?=度|摄氏度)", _below, near="-−"),
]  # fmt: skip

__all__ = ["RULES", "UNITS", "cardinal"]
