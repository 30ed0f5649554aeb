"""Rules for characters whose reading hangs on grammar, where no phrase tells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from utterd.engine.frontend.words import Token

NOT_BY_NETWORK = frozenset("的了子吧啊好还么嗯哦都没少得着地")

NUMERALS = "零〇一二两三四五六七八九十百千万亿几半数"


@dataclass(slots=True)
class Context:
    """A sentence, its words and what is known of its readings."""

    text: str
    tokens: Sequence[Token]
    readings: list[str]
    covered: list[bool]
    _index: list[int] = field(default_factory=list)

    def token(self, i: int) -> int:
        """Return the index of the word that holds character `i`."""
        if not self._index:
            for n, token in enumerate(self.tokens):
                self._index += [n] * (token.end - token.start)
        return self._index[i]

    def tag(self, n: int) -> str:
        """Return the tag of word `n`, "" outside the sentence."""
        return self.tokens[n].tag if 0 <= n < len(self.tokens) else ""

    def word(self, n: int) -> str:
        """Return word `n`, "" outside the sentence."""
        if not 0 <= n < len(self.tokens):
            return ""
        token = self.tokens[n]
        return self.text[token.start : token.end]

    def at(self, i: int) -> str:
        """Return character `i`, "" outside the sentence."""
        return self.text[i] if 0 <= i < len(self.text) else ""


def decide(context: Context, i: int) -> str | None:
    """Return the reading of character `i`, or None where no rule applies."""
    rule = RULES.get(context.text[i])
    return rule(context, i) if rule else None


def _in(characters: str, c: str) -> bool:
    return bool(c) and c in characters


_PRONOUNS = (
    "我",
    "你",
    "您",
    "他",
    "她",
    "它",
    "咱",
    "我们",
    "你们",
    "他们",
    "她们",
    "咱们",
    "大家",
)
_MUST = (
    "还",
    "就",
    "总",
    "都",
    "也",
    "可",
    "又",
    "必",
    "非",
    "这",
    "先",
    "至少",
    "起码",
    "肯定",
    "一定",
)
_COMPLEMENT = "很太更最真好快慢高低多少不非怎那这像可要出起上下来去到住"


def _de_get(context: Context, i: int) -> str | None:
    """得: de5 before a complement, dei3 for must, de2 for get."""
    n = context.token(i)
    if context.tokens[n].end - context.tokens[n].start > 1:
        return None
    before, after = context.word(n - 1), context.tag(n + 1)
    acts = after.startswith(("v", "p", "d"))
    if acts and (
        before in _PRONOUNS or before in _MUST or context.tag(n - 1) in ("", "x", "t", "nr")
    ):
        return "dei3"
    if context.tag(n - 1).startswith(("v", "a", "z")) and _in(_COMPLEMENT, context.at(i + 1)):
        return "de5"
    if context.tag(n - 1).startswith(("v", "a")) and after.startswith(
        ("a", "d", "z", "r", "i", "l")
    ):
        return "de5"
    return None


def _di_ground(context: Context, i: int) -> str | None:
    """地: de5 between a manner and an act, else the ground."""
    n = context.token(i)
    if context.tokens[n].end - context.tokens[n].start > 1:
        return "di4"
    before, after = context.tag(n - 1), context.tag(n + 1)
    word = context.word(n - 1)
    doubled = len(word) > 1 and (word[-2] == word[-1] or word[0] == word[1])
    manner = (
        doubled
        or before.startswith(("d", "a", "z", "i", "l", "o", "b"))
        or word == context.word(n - 2) != ""
        or context.at(i - 1) in ("性", "般", "样", "然")
        or word in ("逐步", "一点点")
    )
    acts = after.startswith(("v", "d", "p", "a", "z", "i", "l", "m")) or (doubled and after)
    if (manner and acts) or (doubled and not after):
        return "de5"
    return "di4"


def _le(context: Context, i: int) -> str | None:
    """了: liao3 as what can or cannot be done (V不了, V得了), else le5."""
    if _in("不得", context.at(i - 1)) and i >= 2:
        n = context.token(i - 2)
        if context.tag(n).startswith("v") or context.tag(n) == "a":
            return "liao3"
    return "le5"


_BENEFICIARY = (
    "我",
    "你",
    "您",
    "他",
    "她",
    "它",
    "咱",
    "谁",
    "大",
    "自",
    "这",
    "那",
    "各",
    "每",
    "全",
    "该",
)
_SET_BEFORE = (
    "成作认称分设调改换变视评选列定名转化译升降增减存标记译解读写约均皆即则仅"
    "最较极更颇尤甚广大沦奉尊誉传贬拜封任聘推立订命叫唤"
)


def _wei(context: Context, i: int) -> str | None:
    """为: wei4 for the sake of, wei2 be or become."""
    before = context.at(i - 1)
    n = context.token(i)
    if context.tokens[n].end - context.tokens[n].start > 1:
        return None
    if _in(_SET_BEFORE, before):
        return "wei2"
    if context.tag(n + 1) in ("m", "x", "", "eng", "f", "q", "c"):
        return "wei2"
    if context.at(i + 1) in _BENEFICIARY and context.tag(n + 2).startswith(
        ("v", "n", "d", "p", "a", "u")
    ):
        return "wei4"
    if (context.tag(n - 1) in ("", "x") or before in "能可会要想来") and any(
        t.tag.startswith("v") for t in context.tokens[n + 1 : n + 5]
    ):
        return "wei4"
    return None


def _zhi_only(context: Context, i: int) -> str | None:
    """只: zhi1 as a measure word, zhi3 only."""
    if _in(NUMERALS + "这那哪每单整另", context.at(i - 1)) and not _in(
        "有要能是会好得不想剩需用看听去供限管说按在让许差", context.at(i + 1)
    ):
        return "zhi1"
    return "zhi3"


_HOUSES = ("酒店", "大酒店", "宾馆", "饭店", "商旅", "花园", "广场", "大厦", "国际", "假日", "商务")


def _du_all(context: Context, i: int) -> str | None:
    """都: du1 inside a name, dou1 all."""
    n = context.token(i)
    if context.word(n + 1) in _HOUSES:
        return "du1"
    long = context.tokens[n].end - context.tokens[n].start > 1
    return "du1" if long and context.tag(n).startswith(("ns", "nr", "nz", "nt", "n")) else "dou1"


def _measured(long_form: str, grown: str) -> Callable[[Context, int], str | None]:
    def rule(context: Context, i: int) -> str | None:
        following, before = context.at(i + 1), context.tag(context.token(i) - 1)
        if (
            _in(NUMERALS + "约达为", following)
            or before in ("q", "mq")
            or _in("米里寸尺", context.at(i - 1))
        ):
            return long_form
        return grown or None

    return rule


def _hang(context: Context, i: int) -> str | None:
    """行: hang2 counted, xing2 when it stands alone at the end."""
    if _in(NUMERALS + "这那每几第", context.at(i - 1)) and _in(
        "字文代诗泪数话白热树，。、的", context.at(i + 1) or "。"
    ):
        return "hang2"
    n = context.token(i)
    alone = context.tokens[n].end - context.tokens[n].start == 1
    if (
        alone
        and context.tag(n + 1) in ("", "x", "y", "ul")
        and context.tag(n - 1) not in ("m", "n")
    ):
        return "xing2"
    return None


def _hello(context: Context, i: int) -> str | None:
    """喂: wei2 hello, wei4 feed."""
    opening = context.tag(context.token(i) - 1) in ("", "x")
    following = context.at(i + 1)
    return "wei2" if opening and (not following or following in "，,！!。？?~你您喂") else "wei4"


def _return(context: Context, i: int) -> str | None:
    """还: huan2 behind its object (把书还…), hai2 still."""
    n = context.token(i)
    if context.tokens[n].end - context.tokens[n].start > 1:
        return None
    if not context.at(i + 1) or context.tag(n + 1) == "x":
        return (
            "huan2"
            if context.word(n - 1) in ("没", "要", "该", "不", "来", "去", "已", "先", "得")
            else "hai2"
        )
    taken = any(context.word(k) in ("把", "将") for k in range(max(0, n - 4), n - 1))
    if taken and not context.tag(n + 1).startswith(("d", "v")):
        return "huan2"
    return "hai2"


def _poor(context: Context, i: int) -> str | None:
    """差: cha4 when it says how something is."""
    n = context.token(i)
    if context.tokens[n].end - context.tokens[n].start > 1:
        return None
    last = context.tag(n + 1) in ("", "x") or context.at(i + 1) in ("了", "得", "吗", "的", "吧")
    return "cha4" if last and context.tag(n - 1).startswith(("n", "d", "v", "z", "a")) else None


def _turn(context: Context, i: int) -> str | None:
    """转: zhuan4 around, when turns are counted."""
    ahead = context.text[i + 1 : i + 5]
    return "zhuan4" if "圈" in ahead or "转" in ahead[:2] else None


def _always(reading: str) -> Callable[[Context, int], str | None]:
    return lambda context, i: reading


RULES: dict[str, Callable[[Context, int], str | None]] = {
    "得": _de_get,
    "地": _di_ground,
    "着": _always("zhe5"),
    "了": _le,
    "为": _wei,
    "只": _zhi_only,
    "都": _du_all,
    "长": _measured("chang2", ""),
    "重": _measured("zhong4", ""),
    "行": _hang,
    "喂": _hello,
    "还": _return,
    "转": _turn,
    "差": _poor,
    "调": _always("tiao2"),
    "的": _always("de5"),
}
