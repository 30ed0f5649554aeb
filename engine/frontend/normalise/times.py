"""Times of day and durations."""

import re

from utterd.engine.frontend.chinese_numbers import cardinal
from utterd.engine.frontend.mapped import Mapped
from utterd.engine.frontend.normalise.amounts import RANGE
from utterd.engine.frontend.normalise.rule import Rule, rule

_CONTEST = re.compile(
    r"比分|爆冷|战胜|击败|领先|落后|战平|险胜|大胜|横扫|完胜|惜败|不敌|战绩|比赛|总分|局分|盘分|进球|逆转|扳成|改写|绝杀|点球"
    r"|比例|配比|比值|之比"
)
_TOLD = re.compile(r"(?:时间|开始|开赛|于|在|[早晚午]上?|凌晨|[日号天]|周.|星期.)$")
_CLOCK = r"(\d{1,2})[:：](\d{2})(?:[:：](\d{2}))?"
_HALF = r"\s?([aApP])(?:\.m\.|[mM](?![A-Za-z0-9]))"


def clock(hour: str, minute: str, second: str | None) -> str | None:
    """Say a time of day, or None where it is none."""
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59:
        return None
    said = f"{'两' if hour in ('2', '02') else cardinal(hour)}点"
    if int(minute) or int(second or 0):
        said += ("零" if minute[0] == "0" else "") + f"{cardinal(minute)}分"
        said = said.replace("零零分", "零分")
    if int(second or 0):
        said += f"{cardinal(second or '')}秒"
    return said


def _time(match: re.Match[str], mapped: Mapped) -> str | None:
    hour, minute, second, half = match.group(1, 2, 3, 4)
    if half is None and second is None:
        before = mapped.text[max(0, match.start() - 12) : match.start()]
        behind = mapped.text[match.end() : match.end() + 6]
        told = _TOLD.search(before)
        if (_CONTEST.search(before) and not told) or re.match(
            r"(?:战胜|击败|领先|落后|战平|险胜|大胜|横扫|不敌|的比)", behind
        ):
            return None
    said = clock(hour, minute, second)
    if said is None:
        return None
    part = {"a": "上午", "p": "下午"}.get((half or "").lower(), "")
    return part + said


def _half_day(match: re.Match[str], mapped: Mapped) -> str | None:
    hour, half = match.group(1, 2)
    if not 1 <= int(hour) <= 12:
        return None
    part = "上午" if half.lower() == "a" else "下午"
    return f"{part}{'两' if int(hour) == 2 else cardinal(hour)}点"


def _marks(match: re.Match[str], mapped: Mapped) -> str:
    minutes, seconds = match.group(1, 2)
    said = f"{cardinal(minutes)}分"
    return said + (f"{cardinal(seconds)}秒" if seconds else "")


def _duration(match: re.Match[str], mapped: Mapped) -> str:
    hours, minutes = match.group(1, 2)
    return f"{'两' if hours == '2' else cardinal(hours)}小时{cardinal(minutes)}分钟"


def _score(match: re.Match[str], mapped: Mapped) -> str:
    return f"{cardinal(match.group(1))}比{cardinal(match.group(2))}"


RULES: list[Rule] = [
    rule(r"(?<![\d/])24/7(?![\d/])", lambda m, t: "二十四七", near="/"),
    rule(r"(?<!\d)7-11(?=便利|店|[，。]|$|买)", lambda m, t: "七十一", near="-"),
    rule(r"(?<![\dA-Za-z.])(\d{1,2})\s?[hH]\s?(\d{1,2})\s?(?:min|m|M|分钟?)?(?![A-Za-z\d])", _duration, near="hH"),
    rule(r"(?<![\d-])(\d{1,3})[-–](\d{1,3})(?=的?比分|战胜|获胜|击败|领先|落后|战平|险胜|大胜|横扫|不敌|逆转|取胜|告负)", _score, near="-–"),
    rule(rf"(?<![\d.])(?<!\d[:：]){_CLOCK}(?:{_HALF})?(?![\d:：]|\.\d)点?", _time, near=":："),
    rule(rf"(?<![\d:.])(\d{{1,2}}){_HALF}", _half_day, near="mM"),
    rule(rf"(?<=[点分秒时半]){RANGE}(?=[零一二两三四五六七八九十\d上下中早晚凌次])", lambda m, t: "到", near="-~～—–－∼〜"),
    rule(r"(?<![\d.])(\d{1,3})['′](\d{1,2})?[\"″](?![A-Za-z])", _marks, near="'′"),
    rule(r"(?<!\d)2(?=点(?!\d)(?:钟|半|整|多|左右|[一二三四五]|\d|[，。,到至吧的前后]|$|\d{1,2}分))",
         lambda m, t: "两", near="2"),
    rule(r"(?<!\d)2(?=点\d{1,2}分|点[零一二三四五])", lambda m, t: "两", near="2"),
]  # fmt: skip
