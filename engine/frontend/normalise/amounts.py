"""How a number is said, whatever stands behind it."""

from utterd.engine.frontend.chinese_numbers import cardinal, counted, digits

NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
"""A number as it is written, commas between thousands allowed."""

RANGE = r"\s?[-~～—–－∼〜]{1,2}\s?"
"""What stands between the ends of a range."""

# Before these a plain two is 两. Units of measure in letters are in `units`.
COUNTED = [
    "个",
    "位",
    "天",
    "小时",
    "分钟",
    "秒钟",
    "周",
    "星期",
    "年",
    "斤",
    "米",
    "公里",
    "千米",
    "厘米",
    "毫米",
    "公斤",
    "千克",
    "克",
    "吨",
    "升",
    "毫升",
    "元",
    "块",
    "毛",
    "角",
    "只",
    "条",
    "张",
    "把",
    "件",
    "辆",
    "台",
    "部",
    "本",
    "支",
    "枝",
    "根",
    "颗",
    "粒",
    "棵",
    "朵",
    "座",
    "栋",
    "幢",
    "间",
    "套",
    "双",
    "对",
    "副",
    "群",
    "队",
    "排",
    "串",
    "瓶",
    "杯",
    "碗",
    "盘",
    "盒",
    "包",
    "袋",
    "箱",
    "桶",
    "罐",
    "片",
    "块",
    "段",
    "节",
    "首",
    "曲",
    "篇",
    "封",
    "句",
    "字",
    "种",
    "类",
    "样",
    "项",
    "份",
    "名",
    "人",
    "家",
    "口",
    "头",
    "匹",
    "艘",
    "架",
    "门",
    "扇",
    "面",
    "幅",
    "次",
    "遍",
    "回",
    "趟",
    "下",
    "场",
    "顿",
    "阵",
    "番",
    "倍",
    "成",
    "步",
    "圈",
    "站",
    "点",
    "刻",
    "里",
    "尺",
    "寸",
    "丈",
    "亩",
    "平方米",
    "立方米",
    "平米",
    "英寸",
    "英尺",
    "英里",
    "海里",
    "加仑",
    "磅",
    "盎司",
    "美元",
    "欧元",
    "英镑",
    "日元",
    "港币",
    "港元",
    "万",
    "亿",
    "千",
    "百",
    "层",
    "岁",
    "株",
    "具",
    "枚",
    "盏",
    "顶",
    "束",
    "滴",
    "处",
    "所",
    "座",
    "则",
    "桩",
    "笔",
    "起",
    "通",
    "档",
    "集",
    "季",
    "期",
    "版",
    "页",
    "行",
    "组",
    "批",
    "夜",
    "晚",
    "日游",
    "室",
    "厅",
    "卫",
    "居",
    "座位",
    "杯子",
    "瓶子",
    "车道",
    "车厢",
    "箱子",
    "盘菜",
    "道菜",
    "道",
    "公顷",
    "摄氏度",
    "帧",
    "兆",
    "千瓦",
    "千瓦时",
    "伏",
    "瓦",
    "分贝",
    "毫安时",
    "度电",
    "人份",
    "分",
]
# After these the number names one of a row: 第2, 2号, 2楼.
_ROW = (
    "楼",
    "号",
    "月",
    "班",
    "年级",
    "单元",
    "等奖",
    "级",
    "线",
    "环",
    "队",
    "组",
    "中",
    "期",
    "版",
)


def number(text: str) -> str:
    """Say a number that may have commas and a fraction."""
    text = text.replace(",", "")
    whole, dot, fraction = text.partition(".")
    if dot:
        return f"{cardinal(whole)}点{digits(fraction)}"
    return cardinal(whole)


def signed(sign: str, text: str) -> str:
    """Say a number behind its sign."""
    return {"-": "负", "−": "负", "－": "负", "+": "正", "＋": "正"}.get(sign, "") + number(text)


def of(text: str, following: str) -> str:
    """Say a number before `following`, the text behind it."""
    if text.lstrip("0") != "2" or text != "2":
        return number(text)
    if following.startswith(("年级", "月", "日", "号", "楼", "班", "环")):
        return "二"
    if following.startswith(("两", "次方", "维", "进制")):
        return "二"
    return counted(text) if following.startswith(_COUNTED) else "二"


_COUNTED = tuple(COUNTED)


def money(text: str) -> str:
    """Say an amount of money: cents that are nought are not said."""
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return number(text or "0")
