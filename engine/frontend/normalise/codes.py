"""Numbers that are names: telephones, plates, rooms, flights, serial numbers."""

import re

from utterd.engine.frontend.chinese_numbers import digits
from utterd.engine.frontend.mapped import Mapped, join
from utterd.engine.frontend.normalise.rule import Rule, code, rule

_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_KEYS = (
    "编号|卡号|账号|帐号|单号|订单号?|运单号?|车牌号?码?|车牌照?|工号|学号|证号|身份证号?码?|验证码|校验码|密码|口令|"
    "邮编|邮政编码|房号|房间号?|门牌|热线|专线|电话号?码?|手机号?码?|座机|固话|致电|传真|客服|代码|代号|股票代码|QQ群?号?|微信号?|"
    "航班号?|车次|编码|序列号|机号|分机号?|取件码|提货码|提取码|邀请码|兑换码|激活码|会员号|档案号|流水号|批号|"
    "区号|号码|服务号|准考证号?|护照号?|设备号|识别码|快递单?|尾数|桌号|座位号|登机口|(?<![A-Za-z])(?:ID|PIN)"
)
_SERVICE = (
    r"110|112|114|117|119|120|121|122|12110|12121|12122|12123|12306|12315|12319|12320|12333|12345|12348|"
    r"12355|12366|12369|12371|12378|12380|12388|12395|10000|10010|10050|10060|10086|10099"
)
# What may not follow if a number is to be a telephone number: it would be an amount.
_AMOUNT = r"(?![\d.]|\s?(?:[个米块元斤度天年人次分秒点万千百亿%℃°公厘毫平立英层楼岁名位件辆只条张本部台家页]|[a-zA-Z]))"


def _digits(match: re.Match[str], mapped: Mapped) -> Mapped:
    return code(mapped, match.start(), match.end())


def _group(match: re.Match[str], mapped: Mapped) -> Mapped:
    """Keep what stands before group `n`, read that one as a code."""
    start, end = match.span("n")
    return join(
        [
            mapped.piece(match.start(), start),
            code(mapped, start, end),
            mapped.piece(end, match.end()),
        ]
    )


def _yao(match: re.Match[str], mapped: Mapped) -> str:
    return digits(match.group(), yao=True)


def _phone(match: re.Match[str], mapped: Mapped) -> Mapped:
    extension = match.group("ext")
    if not extension:
        return code(mapped, match.start(), match.end())
    start, end = match.span("ext")
    turn = mapped.whole(match.end("main"), start, "转")
    return join([code(mapped, match.start(), match.end("main")), turn, code(mapped, start, end)])


def _long(match: re.Match[str], mapped: Mapped) -> Mapped | None:
    text = match.group()
    if text.endswith("000"):
        return None
    return code(mapped, match.start(), match.end())


_EXT = r"(?:\s?(?:转|-|—|#|分机|ext\.?)\s?(?P<ext>\d{1,6}))?"

RULES: list[Rule] = [
    rule(rf"(?P<main>(?<!\d)(?:\+?\(?86\)?[-\s]?)?1[3-9]\d[-\s]?\d{{4}}[-\s]?\d{{4}}){_EXT}(?![\d.])", _phone, near="1"),
    rule(rf"(?P<main>(?<!\d)(?:\+?86[-\s]?)?[（(]?0\d{{2,3}}[)）]?\s?[-—－]?\s?\d{{7,8}}){_EXT}(?!\d)", _phone, near="0"),
    rule(r"(?<!\d)0\d{2,3}[-\s]\d{3,4}[-\s]\d{4}(?!\d)", _digits),
    rule(r"\+\d{1,3}[-\s]?\(?\d{3}\)?[-\s]?\d{3}[-\s]?\d{4}(?!\d)", _digits, near="+"),
    rule(rf"(?P<main>(?<!\d)\+86[-\s]?\d{{2,3}}[-\s]?\d{{7,8}}){_EXT}(?!\d)", _phone, near="+"),
    rule(rf"(?P<main>(?<!\d)0\d{{2,3}}-\d{{3,4}}-\d{{4}}){_EXT}(?!\d)", _phone, near="0"),
    rule(rf"(?P<main>(?<!\d)[48]00[-\s]?\d{{3,4}}[-\s]?\d{{3,4}}){_EXT}(?!\d)(?![个米块元斤度天年人次])", _phone, near="48"),
    rule(rf"(?<![\d.A-Za-z])(?:{_SERVICE})(?![\d.A-Za-z])(?=报警|急救|热线|电话|专线|客服|指挥|短信|营业|官网|平台|订票|购票|抢票)", _yao, near="1"),
    rule(rf"(?:(?<=拨打)|(?<=拨)|(?<=打)|(?<=致电)|(?<=呼叫)|(?<=电话)|(?<=或者)|(?<=联系)|(?<=热线))(?:{_SERVICE}){_AMOUNT}", _yao, near="1"),
    rule(rf"^(?:{_SERVICE})$", _yao, near="1"),
    rule(r"(?<=尾号)(?:\d{2,6})(?!\d)|(?<=尾号为)\d{2,6}(?!\d)|(?<=尾号是)\d{2,6}(?!\d)", _yao, near="尾"),
    rule(rf"[{_PROVINCES}][A-Z][·•.\s-]?(?P<n>[A-Z0-9]{{4,6}}[警学挂港澳领使]?)(?![A-Za-z0-9])", _group, near=_PROVINCES),
    rule(r"(?<![\dA-Za-z])\d{17}[\dXx](?![\dA-Za-z])", _digits),
    rule(
        rf"(?:{_KEYS})(?:号码?|是|为|[:：]|\s|「|“|\"|后[四六三]位|就|叫)*(?P<n>[A-Za-z]{{0,6}}[-\s]?\d[\dA-Za-z-]*(?: \d{{3,4}}(?![\d.]))*)(?![.:]\d)"
        r"(?!\s?(?:[个米块元斤天年人次秒万千亿%℃°层楼岁件辆只条张本部台家页间]|分钟|小时|多[少个]))",
        _group,
    ),
    rule(r"(?<=\d米)[1-9]\d(?![\d.厘米])", _digits, near="米"),
    rule(r"[“\"'「](?P<n>\d{3,})[”\"'」](?=号)", _group, near="“\"'「"),
    rule(r"(?<![\d.])\d{3,6}(?=号(?!线|[召角令]))", _digits, near="号"),
    rule(r"(?<![\d.])[1-9]\d{2,3}(?=(?:室|房间?|教室|会议室|包间|包厢|寝室|宿舍|病房|班|中学|厂|医院|研究所|国道|省道|县道|高速|工程|高校|院校|大学|工作制|路|快线)(?!子))",
         lambda m, t: None if m.group().endswith("00") else code(t, m.start(), m.end())),
    rule(r"(?<=单元)\d{3,4}(?!\d)|(?<=楼)\d{3,4}(?![\d个米元])|(?<=号楼)\d{3,4}(?!\d)|(?<=栋)\d{3,4}(?!\d)|(?<=座)\d{3,4}(?!\d|[个米元])", _digits, near="元楼栋座"),
    rule(r"(?<![A-Za-z\d])[GDCZTKLSY]\d{1,4}(?=次|列车|号?高铁|动车|国道|高速|[省县]道)", _digits, near="GDCZTKLSY"),
    rule(r"(?<![A-Za-z\d])[GS]\d{2,4}(?![\dA-Za-z]|\.\d)", _digits, near="GS"),
    rule(r"(?<![A-Za-z\d])(?:[A-Z]{2}|[A-Z]\d|\d[A-Z])[-\s]?\d{3,4}(?=航班|次航班|号航班|起飞|降落|到达|的航班)", _digits, near="航飞降到"),
    rule(r"(?<![A-Za-z\d])(?:CA|MU|CZ|HU|MF|ZH|FM|KN|SC|GS|HO|JD|PN|EU|CX|KA|BA|UA|AA|DL|LH|AF|KE|OZ|NH|JL|SQ|TG)\d{3,4}(?![\dA-Za-z])", _digits, near=_CAPITALS),
    rule(r"(?<![\dA-Za-z])[A-Z](?=\d+[A-Z]+\d)[A-Z0-9]{3,}(?![A-Za-z])", _digits, near=_CAPITALS),
    rule(r"(?<![\d.A-Za-z])\d{3}(?=银(?!行|河)|新政|政策|事件|事变|惨案|购物节|大促|晚会|指示)", _digits, near="银新政事惨购大晚指"),
    rule(r"(?:分辨率|像素)(?:是|为|达到|高达|[:：])?(?P<n>\d{3,4})(?!\d|\s?[万亿xX*×])", _group, near="辨像"),
    rule(r"(?<=[A-Z][A-Z] )[1-9]\d(?!00)\d\d(?![\d.]|\s?[万亿个米块元年])", _digits, near=_CAPITALS),
    rule(r"(?<=[A-Za-z]\d-)\d{3,5}(?=[A-Z]{0,2}(?![A-Za-z0-9]))", _digits, near="-"),
    rule(r"(?<![\dA-Za-z])\d{3}/\d{2}(?=R\d{2})", _digits, near="R"),
    rule(r"^(?:985|211|996|404|520|618|1314|007|(?:10|95|96|12)\d(?!00)\d\d)$", _digits, near="9246510"),
    rule(r"(?<![\d.])(?:985|211|996|404|618)(?=[/、和及或]|高校|大学|院校|工程|工作制|的?学校|错误|大促)", _digits, near="9246510"),
    rule(r"(?<=拨打)\d{3,}(?!\d)|(?<=致电)\d{3,}(?!\d)|(?<=转接)\d{3,}(?!\d)|(?<=分机)\d{3,}(?!\d)|(?<=转)\d{4,}(?!\d|[元块])", _digits, near="拨致转分"),
    rule(r"(?<![\d.,A-Za-z])\d{7,}(?!\d|\.\d|,\d{3}(?!\d)|\s?[万亿个米块元斤度天年人次%名位户条辆件台棵吨公美欧日港]|，\d{3})", _long),
]  # fmt: skip
