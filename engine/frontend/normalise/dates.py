"""Dates: years, months, days, decades, ranges of them."""

import re

from utterd.engine.frontend.chinese_numbers import cardinal, digits
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise.amounts import RANGE
from utterd.engine.frontend.normalise.rule import Rule, rule

_YEAR = r"(?:1\d|20|21)\d\d"
_EDGE = r"(?<![\d.])"
_END = r"(?![\d]|[-/.]\d)"


def _is_date(month: str, day: str = "1") -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31


def _mdy(match: re.Match[str], mapped: Mapped) -> str | None:
    month, day, year = match.group(1, 2, 3)
    if int(month) > 12:
        month, day = day, month
    if not _is_date(month, day):
        return None
    return f"{digits(year)}年{cardinal(month)}月{cardinal(day)}日"


def _ym(match: re.Match[str], mapped: Mapped) -> str | None:
    year, month = match.group("year", "month")
    return f"{digits(year)}年{cardinal(month)}月" if _is_date(month) else None


def _md(match: re.Match[str], mapped: Mapped) -> str | None:
    month, sign, day = match.group(1, 2, 3)
    # Without a nought it is a range (12-23) or a decimal; with a slash two digits each are a date.
    if not (month[0] == "0" or day[0] == "0" or sign == "/") or not _is_date(month, day):
        return None
    if sign == "." and month[0] != "0":
        return None
    return f"{cardinal(month)}月{cardinal(day)}日"


def _years(match: re.Match[str], mapped: Mapped) -> str | None:
    first, second = match.group(1, 2)
    if int(first) >= int(second):
        return None
    return f"{digits(first)}到{digits(second)}"


_SPAN = re.compile(
    r"(?:历史|前|后|以前|以后|以来|来|间|时间|多|左右|内|之|的历史|的时间|了|老|一遇|寿命|期)"
)


def _year(match: re.Match[str], mapped: Mapped) -> str | None:
    year = match.group(1)
    behind = mapped.text[match.end() : match.end() + 4]
    before = mapped.text[max(0, match.start() - 4) : match.start()]
    era = before.endswith(("公元", "公元前", "元前", "前", "西元"))
    if len(year) == 4:
        if year.endswith("00") and not year.startswith(("19", "20")) and _SPAN.match(behind):
            return None
        if year in ("2000", "1000") and re.match("的?历史", behind):
            return None
        return digits(year) + "年"
    if len(year) in (1, 3):
        return digits(year) + "年" if era else None
    if re.match(
        r"\d{1,2}月|[春夏秋冬]|年?底|年?初|款|版|出生|生人|毕业|入学|入伍|世界杯|奥运", behind
    ):
        return digits(year) + "年"
    if era or year[0] == "0" or (int(year) >= 60 and not _SPAN.match(behind)):
        return digits(year) + "年"
    return None


def _decade(match: re.Match[str], mapped: Mapped) -> str:
    century, decade = match.group(1) or "", match.group(2)
    return f"{digits(century + decade)}年代" if century else f"{cardinal(decade)}年代"


def _to(match: re.Match[str], mapped: Mapped) -> str:
    return "到"


_DAYS = {
    "5.1": "五一",
    "10.1": "十一",
    "3.15": "三一五",
    "9.11": "九一一",
    "9.18": "九一八",
    "7.7": "七七",
    "12.9": "一二九",
}


def _day(match: re.Match[str], mapped: Mapped) -> str | None:
    return _DAYS.get(match.group(1))


def _ymd(match: re.Match[str], mapped: Mapped) -> str | None:
    year, month, day = match.group(1, 3, 4)
    if not _is_date(month, day):
        return None
    return f"{digits(year)}年{cardinal(month)}月{cardinal(day)}日"


def _after(match: re.Match[str], mapped: Mapped) -> str | None:
    """80后, 95后: those born then; but 20后 of a duration is not written so."""
    before = mapped.text[max(0, match.start() - 1) : match.start()]
    return None if before in ("第", "过", "约") else digits(match.group(1))


def _feast(match: re.Match[str], mapped: Mapped) -> str | None:
    month, day = match.group(1, 2)
    return f"{cardinal(month)}月{cardinal(day)}日" if _is_date(month, day) else None


RULES: list[Rule] = [
    rule(r"(?<![\d/.])(\d{1,2})/(\d{1,2})(?![\d/.])(?=[一-鿿]{1,2}节|[日号]?(?:截止|上映|发布|当天|生日|到期|起))[日号]?", _feast, near="/"),
    rule(r"(?<![\d/.])(1[0-2])/(1)(?![\d/.])", _feast, near="/"),
    rule(rf"{_EDGE}({_YEAR})\s?([-/.])\s?(\d{{1,2}})\s?\2\s?(\d{{1,2}})(?!\d|\.\d)日?",
         _ymd),
    rule(rf"{_EDGE}(\d{{1,2}})[-/.](\d{{1,2}})[-/.]({_YEAR}){_END}", _mdy),
    rule(rf"{_EDGE}(?P<year>(?:19|20)\d\d)[-/](?P<month>\d{{1,2}}){_END}(?!\d*[年月日号点:%])月?", _ym),
    rule(rf"{_EDGE}(?P<year>(?:19|20)\d\d)\.(?P<month>0[1-9]|1[0-2]){_END}(?![年月日号元米度%])", _ym),
    rule(rf"{_EDGE}(?P<month>0?[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d){_END}", _ym),
    rule(rf"{_EDGE}(?<![A-Za-z/])(\d\d)([-./])(\d\d){_END}(?![年月号%元℃°A-Za-z])日?", _md),
    rule(rf"{_EDGE}({_YEAR})年?{RANGE}({_YEAR})(?=年|\)|）|赛季|学年|财年|$|[，。,、])", _years),
    rule(r"(?<!\d)((?:1\d|20)?)(\d0)年代", _decade, near='年'),
    rule(r"(?<!\d)((?:1\d|20)\d0)[sS](?![A-Za-z0-9])", lambda m, t: f"{digits(m.group(1))}年代", near="sS"),
    rule(r"(?<!\d)(\d{1,4})年(?!级|代|[个])", _year, near="年"),
    rule(r"(?<!\d)([0-9][05])(?=后(?!天|面|续|悔|来|[,，。\d]|$)|后$|后[，。,])", _after, near="后"),
    rule(rf"(?<=[年月日号周]){RANGE}(?=[\d一二三四五六七八九十零])", _to, near="-~～—–－∼〜"),
    rule(rf"(?<=[周期][一二三四五六日天]){RANGE}(?=(?:周|星期|礼拜)?[一二三四五六日天])", _to, near="-~～—–－∼〜"),
    rule(r"(?<![\d.])(\d{1,2}\.\d{1,2})(?=劳动|国庆|假期|放假|长假|小长假|晚会|事件|事变|运动(?!鞋))", _day, near="."),
]  # fmt: skip
