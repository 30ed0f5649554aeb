"""Sentence frames with slots: the commands, answers and mixtures that lists alone do not cover."""

import random
from collections.abc import Iterator

_SLOTS: dict[str, tuple[str, ...]] = {
    "place": (
        "机场", "火车站", "人民医院", "图书馆", "体育馆", "动物园", "加油站", "充电站", "公司",
        "幼儿园", "菜市场", "电影院", "科技馆",
        "海洋公园", "长途汽车站", "植物园", "邮局", "派出所",
        "购物中心", "湿地公园", "古镇", "滑雪场", "温泉酒店", "渡口", "奥体中心", "北门", "老城区",
    ),
    "city": (
        "北京", "上海", "广州", "深圳", "重庆", "成都", "杭州", "南京", "武汉", "西安", "哈尔滨",
        "乌鲁木齐", "呼和浩特", "昆明", "贵阳", "厦门",
        "青岛", "郑州", "长沙", "拉萨", "海口", "兰州",
    ),
    "person": (
        "妈妈", "爸爸", "爷爷", "奶奶", "张伟", "李娜", "王芳", "赵磊", "孙悦", "周医生", "吴老师",
        "郑经理", "冯小姐", "陈律师", "褚师傅", "蒋阿姨", "沈教练", "韩工", "杨主任", "邱雪",
        "Kevin", "Alice", "Tom", "Jennifer", "Michael", "Sophie", "Eric", "Linda",
    ),
    "thing": (
        "空调", "台灯", "电视", "窗帘", "加湿器", "扫地机器人", "热水器", "吊扇", "音箱", "电热毯",
        "净化器", "投影仪", "咖啡机", "洗碗机", "门锁",
        "车窗", "天窗", "雾灯", "座椅加热", "氛围灯",
        "Bluetooth", "Wi-Fi", "GPS", "LED灯",
    ),
    "room": (
        "客厅", "卧室", "厨房", "书房", "阳台",
        "浴室", "走廊", "车库", "儿童房", "地下室", "院子",
    ),
    "number": (
        "一", "两", "三", "四", "五", "六", "七",
        "八", "九", "十", "十二", "十五", "二十", "三十六",
        "四十五", "六十", "八十八", "一百二十", "三百五十", "九百", "一千零一", "两万四千",
    ),
    "clock": (
        "早上六点", "七点一刻", "上午九点半",
        "中午十二点", "下午两点四十", "三点零五分", "傍晚五点",
        "晚上八点", "十点五十", "凌晨一点",
    ),
    "day": (
        "今天", "明天", "后天", "昨天", "周一", "周二", "周三", "周四", "周五", "周六", "周日",
        "月底", "下个月三号", "国庆节", "春节", "清明", "元旦",
    ),
    "weather": (
        "晴", "多云", "阴", "小雨", "雷阵雨", "暴雨",
        "大雪", "有雾", "刮大风", "雨夹雪", "冰雹", "沙尘",
    ),
    "dish": (
        "宫保鸡丁", "鱼香肉丝", "麻婆豆腐", "清蒸鲈鱼", "酸辣粉", "小笼包", "葱油拌面", "红烧排骨",
        "虾仁炒蛋", "炸酱面", "羊肉泡馍", "桂花糕", "绿豆汤", "皮蛋瘦肉粥", "pizza", "sandwich",
        "latte", "cheesecake", "salad",
    ),
    "song": (
        "茉莉花", "彩云追月", "渔舟唱晚", "送别", "高山流水", "小星星", "Yesterday", "Moon River",
        "Jingle Bells", "Let It Be", "Hey Jude", "爵士乐", "摇滚", "古典音乐", "轻音乐", "评书",
    ),
    "app": (
        "Spotify", "YouTube", "WeChat", "Zoom", "Word", "PowerPoint", "Photoshop",
        "Chrome", "Twitter", "Facebook", "Outlook", "Skype", "Amazon",
    ),
    "tech": (
        "email", "password", "update", "server", "keyboard", "router", "project", "meeting",
        "deadline", "report", "file", "memory", "camera", "account", "folder", "cable", "driver",
    ),
    "object": (
        "雨伞", "钥匙", "护照", "眼镜", "充电器", "行李箱", "热水瓶", "剪刀", "羽毛球拍", "围裙",
        "拼图", "蜡烛", "望远镜", "笔记本", "葫芦", "核桃", "橘子", "棉袄", "磁带", "锤子",
    ),
    "feeling": (
        "特别高兴", "有点难过", "累坏了", "松了一口气",
        "非常惊讶", "不知所措", "心里暖暖的", "气得直跺脚",
        "又困又饿", "相当满意", "怀疑极了", "后悔莫及",
    ),
    "en_place": (
        "the airport", "the nearest hospital", "Baker Street", "the city library", "the town hall",
        "my office", "the ferry terminal", "the zoo", "the shopping centre", "the university",
    ),
    "en_thing": (
        "the heater", "the front window", "the radio", "the ceiling fan", "the garden lights",
        "the washing machine", "the air conditioner", "the alarm", "the projector", "the oven",
    ),
    "en_number": (
        "two", "three", "four", "five", "six", "seven", "eight", "nine", "eleven", "twelve",
        "fifteen", "twenty", "thirty five", "sixty", "one hundred",
    ),
    "en_day": (
        "today", "tomorrow", "on Monday", "on Tuesday", "on Wednesday", "on Saturday", "next week",
        "in the morning", "this evening", "after lunch", "in July", "by the end of October",
    ),
    "en_noun": (
        "package", "letter", "bicycle", "camera", "jacket", "garden", "picture", "question",
        "church", "village", "river", "engine", "treasure", "measure", "mouth", "bridge", "voyage",
    ),
    "en_adjective": (
        "tiny", "beautiful", "dangerous", "golden", "thick", "smooth", "enormous", "quiet",
        "strange", "gentle", "valuable", "frozen", "cheerful", "southern", "weird", "boring",
    ),
}  # fmt: skip

_FRAMES: tuple[str, ...] = (
    "导航到{place}。",
    "去{place}怎么走，需要多长时间？",
    "从{place}到{place}大约{number}公里。",
    "前方{number}米右转，然后直行到{place}。",
    "前方{number}米有限速拍照，请保持车速。",
    "{place}附近有{number}家餐厅，最近的只有{number}百米。",
    "到{city}的高速正在堵车，预计{clock}才能到。",
    "请把{room}的{thing}打开。",
    "{room}的{thing}已经关了。",
    "{thing}出了点问题，请检查一下。",
    "{clock}提醒我给{person}打电话。",
    "{person}刚才来过电话，问你{day}有没有空。",
    "{person}说{day}要去{city}出差。",
    "把{object}放在{room}，别忘了。",
    "谁看见我的{object}了？",
    "{day}{city}{weather}，最高气温{number}度。",
    "{day}的天气怎么样，会不会{weather}？",
    "闹钟已设到{day}{clock}。",
    "请播放{song}，音量调到百分之{number}。",
    "我想吃{dish}，再来一份{dish}。",
    "这家店的{dish}卖{number}块钱一份。",
    "听到这个消息，{person}{feeling}。",
    "{person}把{object}忘在{place}了，{feeling}。",
    "打开{app}，登录我的账号。",
    "用{app}给{person}发一条消息。",
    "这个{tech}有点问题，{day}再看吧。",
    "{person}的{tech}已经发过来了。",
    "请检查一下{tech}和{tech}。",
    "{app}的{tech}还没有准备好。",
    "一共{number}件，每件{number}元。",
    "第{number}页，第{number}行。",
    "{number}加{number}等于多少？",
    "{person}，{day}{clock}在{place}门口见。",
    "从{city}开往{city}的列车{clock}发车。",
    "{city}今年的游客比去年多了百分之{number}。",
    "{thing}的电量还剩百分之{number}。",
    "{feeling}的时候，就听听{song}吧。",
    "Please turn on {en_thing}.",
    "Please turn off {en_thing} {en_day}.",
    "How far is it to {en_place}?",
    "Take me to {en_place}, please.",
    "The {en_noun} is {en_adjective}, and the {en_noun} is not.",
    "I saw a {en_adjective} {en_noun} near {en_place}.",
    "Set a timer for {en_number} minutes.",
    "There are {en_number} messages about the {en_adjective} {en_noun}.",
    "We will reach {en_place} in {en_number} minutes.",
    "She put the {en_noun} behind the {en_adjective} {en_noun} {en_day}.",
    "Does the {en_noun} belong to them?",
    "Between {en_number} and {en_number}, choose one.",
)
_EACH = 60


def fill(rng: random.Random) -> Iterator[str]:
    """Yield up to 60 different fillings of each frame, drawn from `rng`."""
    for frame in _FRAMES:
        made: set[str] = set()
        for _ in range(_EACH):
            text = _fill(frame, rng)
            if text not in made:
                made.add(text)
                yield text


def _fill(frame: str, rng: random.Random) -> str:
    text = frame
    for slot, words in _SLOTS.items():
        while f"{{{slot}}}" in text:
            text = text.replace(f"{{{slot}}}", rng.choice(words), 1)
    return text
