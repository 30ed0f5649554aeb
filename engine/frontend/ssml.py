"""SSML to a document: the text that is said, with pauses, marks, readings and styles.

Parsed with expat. Document types and entities are refused before anything is expanded, so a small
text cannot grow into a large one.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from xml.parsers import expat

from utterd.engine.frontend.chinese_numbers import cardinal
from utterd.engine.frontend.inline import plain_pinyin
from utterd.engine.frontend.mapped import Mapped, join
from utterd.engine.frontend.markup_model import Document, MarkAt, Pause, Style
from utterd.engine.frontend.normalise.rule import code
from utterd.engine.frontend.phonemes import is_syllable

MAX_DEPTH = 32
MAX_BREAK_MS = 10_000
KNOWN = (
    "speak",
    "p",
    "s",
    "break",
    "mark",
    "sub",
    "say-as",
    "phoneme",
    "prosody",
    "emphasis",
    "voice",
    "lang",
)

_RATES = {"x-slow": 0.5, "slow": 0.75, "medium": 1.0, "default": 1.0, "fast": 1.35, "x-fast": 1.8}
_PITCHES = {"x-low": 0.7, "low": 0.85, "medium": 1.0, "default": 1.0, "high": 1.15, "x-high": 1.3}
_VOLUMES = {
    "silent": 0.0,
    "x-soft": 0.35,
    "soft": 0.6,
    "medium": 1.0,
    "default": 1.0,
    "loud": 1.35,
    "x-loud": 1.7,
}
_BREAKS = {"none": 0, "x-weak": 80, "weak": 150, "medium": 300, "strong": 500, "x-strong": 900}
_EMPHASIS = {
    "none": (1.0, 1.0, 1.0),
    "reduced": (1.08, 0.97, 0.85),
    "moderate": (0.92, 1.04, 1.15),
    "strong": (0.85, 1.08, 1.3),
}
_HAN = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")


class SsmlError(ValueError):
    """SSML that cannot be read: what is wrong, where, and what to do."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


def parse(text: str, offset: int = 0) -> Document:
    """Read SSML; positions are characters of `text` plus `offset`.

    Raises:
        SsmlError: it is no well-formed SSML, or asks for something that does not exist.
    """
    return _Parser(text, offset).run()


class _Open:
    """An element whose end has not come: where its text begins, and its attributes."""

    def __init__(
        self, name: str, attributes: dict[str, str], part: int, line: int, column: int
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.part = part
        self.line = line
        self.column = column


class _Parser:
    def __init__(self, text: str, offset: int) -> None:
        self._text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        self._offset = offset
        self._bytes = self._text.encode("utf-8")
        self._position_of_byte = (0, 0)
        self._parts: list[Mapped] = []
        self._stack: list[_Open] = []
        self._styles: list[Style] = []
        self._style_stack: list[Style] = [Style(0, 0)]
        self._document = Document(Mapped.of(""))
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = False
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._data
        self._parser.StartDoctypeDeclHandler = self._refuse("a document type")
        self._parser.EntityDeclHandler = self._refuse("an entity")
        self._parser.ProcessingInstructionHandler = self._refuse("a processing instruction")

    def run(self) -> Document:
        try:
            self._parser.Parse(self._bytes, True)
        except expat.ExpatError as error:
            message = expat.errors.messages[error.code]
            advice = (
                "wrap the text in <speak>…</speak>"
                if not self._text.lstrip().startswith("<")
                else "every element must be closed, and & and < written as &amp; and &lt;"
            )
            raise SsmlError(f"{message}; {advice}", error.lineno, error.offset + 1) from None
        self._document.text = join(self._parts)
        self._document.styles = self._styles
        return self._document

    def _refuse(self, what: str) -> Callable[..., None]:
        def refuse(*_: object) -> None:
            raise self._error(f"{what} is not allowed; remove it")

        return refuse

    def _error(self, message: str) -> SsmlError:
        return SsmlError(
            message, self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        )

    def _here(self) -> int:
        """Return the character of the original at which the current event begins."""
        byte, position = self._position_of_byte
        now = self._parser.CurrentByteIndex
        if now >= byte:
            position += len(self._bytes[byte:now].decode("utf-8", "ignore"))
            self._position_of_byte = (now, position)
        return position + self._offset

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name not in KNOWN:
            raise self._error(f"<{name}> is not supported; use {', '.join(KNOWN)}")
        if not self._stack and name != "speak":
            raise self._error("the outermost element must be <speak>")
        if len(self._stack) >= MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} elements inside each other; flatten them")
        here = self._here()
        opened = _Open(
            name,
            attributes,
            len(self._parts),
            self._parser.CurrentLineNumber,
            self._parser.CurrentColumnNumber + 1,
        )
        self._stack.append(opened)
        style = self._style_of(name, attributes, here)
        self._style_stack.append(style or self._style_stack[-1])
        if style:
            self._document.pauses.append(Pause(here, None))
        if name == "break":
            self._document.pauses.append(Pause(here, self._break_ms(attributes), True))
        elif name == "mark":
            if not attributes.get("name"):
                raise self._error("<mark> needs a name")
            self._document.marks.append(MarkAt(here, attributes["name"]))
        elif name in ("p", "s"):
            self._document.pauses.append(Pause(here, None))

    def _end(self, name: str) -> None:
        opened = self._stack.pop()
        style, outer = self._style_stack.pop(), self._style_stack[-1]
        here = self._here()
        end = here + len(f"</{name}>") if self._closes() else here
        if style is not outer:
            self._styles.append(replace(style, end=end))
            self._styles.sort(key=lambda s: (s.start, -s.end))
            self._document.pauses.append(Pause(end, None))
        if name in ("p", "s"):
            self._document.pauses.append(Pause(end, 600 if name == "p" else 400))
        content = join(self._parts[opened.part :])
        said = content
        if name == "sub":
            said = self._sub(content, opened, here)
        elif name == "say-as":
            said = self._say_as(content, opened)
        elif name == "phoneme":
            said = self._phoneme(content, opened)
        if said is not content:
            self._parts[opened.part :] = [said]

    def _closes(self) -> bool:
        return self._bytes[self._parser.CurrentByteIndex :].startswith(b"</")

    def _data(self, data: str) -> None:
        if not self._stack:
            return
        here = self._here()
        raw = data.encode("utf-8")
        at = self._parser.CurrentByteIndex
        if self._bytes[at : at + len(raw)] == raw:
            self._parts.append(Mapped.of(data, here))
            return
        # An entity such as &amp;, or the two characters of a line end.
        end = self._bytes.find(b";", at) + 1 if self._bytes[at : at + 1] == b"&" else at + 2
        length = len(self._bytes[at:end].decode("utf-8", "ignore"))
        self._parts.append(Mapped(data, [here] * len(data), [here + length] * len(data)))

    def _style_of(self, name: str, attributes: dict[str, str], here: int) -> Style | None:
        outer = replace(self._style_stack[-1], start=here)
        if name == "prosody":
            return replace(
                outer,
                rate=_clamp(outer.rate * self._factor("rate", attributes, _RATES), 0.25, 4),
                pitch=_clamp(outer.pitch * self._factor("pitch", attributes, _PITCHES), 0.5, 2),
                volume=_clamp(outer.volume * self._factor("volume", attributes, _VOLUMES), 0, 2),
            )
        if name == "emphasis":
            level = attributes.get("level", "moderate")
            if level not in _EMPHASIS:
                raise self._error(f"level={level!r}; use {', '.join(_EMPHASIS)}")
            rate, pitch, volume = _EMPHASIS[level]
            return replace(outer, rate=outer.rate * rate, pitch=outer.pitch * pitch,
                           volume=_clamp(outer.volume * volume, 0, 2))  # fmt: skip
        if name == "voice":
            if not attributes.get("name"):
                raise self._error("<voice> needs a name")
            return replace(outer, speaker=attributes["name"])
        language = attributes.get("xml:lang", "")
        if name == "lang" and not language:
            raise self._error("<lang> needs xml:lang")
        return replace(outer, language=language) if language else None

    def _factor(self, name: str, attributes: dict[str, str], words: dict[str, float]) -> float:
        value = attributes.get(name, "medium").strip()
        if value in words:
            return words[value]
        match = re.fullmatch(r"([+-]?)(\d+(?:\.\d+)?)(%|st|dB)?", value)
        if match is None:
            raise self._error(
                f"{name}={value!r}; use {', '.join(words)} or a percentage such as 120%"
            )
        sign, number, unit = match.group(1), float(match.group(2)), match.group(3)
        signed = -number if sign == "-" else number
        if unit == "st":
            return float(2 ** (signed / 12))
        if unit == "dB":
            return float(10 ** (signed / 20))
        if unit == "%":
            return 1 + signed / 100 if sign else number / 100
        if name == "volume":
            return number / 100
        return 1 + signed if sign else number

    def _break_ms(self, attributes: dict[str, str]) -> int:
        time = attributes.get("time", "").strip()
        if time:
            match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)", time)
            if match is None:
                raise self._error(f"time={time!r}; write it as 500ms or 1.5s")
            ms = round(float(match.group(1)) * (1000 if match.group(2) == "s" else 1))
            if ms > MAX_BREAK_MS:
                raise self._error(f"time={time!r} is longer than {MAX_BREAK_MS // 1000}s")
            return ms
        strength = attributes.get("strength", "medium")
        if strength not in _BREAKS:
            raise self._error(f"strength={strength!r}; use {', '.join(_BREAKS)}")
        return _BREAKS[strength]

    def _sub(self, content: Mapped, opened: _Open, here: int) -> Mapped:
        alias = opened.attributes.get("alias")
        if alias is None:
            raise SsmlError("<sub> needs an alias", opened.line, opened.column)
        if not content.text:
            return Mapped(alias, [here] * len(alias), [here] * len(alias))
        return content.whole(0, len(content.text), alias)

    def _phoneme(self, content: Mapped, opened: _Open) -> Mapped:
        alphabet = opened.attributes.get("alphabet", "pinyin").lower()
        if alphabet not in ("pinyin", "py", "x-pinyin", "x-amazon-pinyin", "sapi"):
            raise SsmlError(
                f"alphabet={alphabet!r}; only pinyin is supported", opened.line, opened.column
            )
        syllables = plain_pinyin(opened.attributes.get("ph", ""))
        places = [i for i, c in enumerate(content.text) if _HAN.match(c)]
        if not syllables or len(syllables) != len(places):
            raise SsmlError(
                f"ph has {len(syllables)} syllables for {len(places)} characters; "
                'give one each, as in ph="yin2 hang2"',
                opened.line, opened.column,
            )  # fmt: skip
        for syllable in syllables:
            if not is_syllable(syllable):
                raise SsmlError(
                    f"{syllable!r} is no syllable of Mandarin with its tone",
                    opened.line,
                    opened.column,
                )
        readings = dict(zip(places, syllables, strict=True))
        return Mapped(content.text, content.starts, content.ends, readings)

    def _say_as(self, content: Mapped, opened: _Open) -> Mapped:
        kind = opened.attributes.get("interpret-as", "")
        say = _SAY_AS.get(kind)
        if say is None:
            raise SsmlError(
                f"interpret-as={kind!r}; use {', '.join(_SAY_AS)}", opened.line, opened.column
            )
        return say(content) if content.text else content


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _characters(content: Mapped) -> Mapped:
    parts = []
    for i, c in enumerate(content.text):
        parts.append(
            code(content, i, i + 1) if c.isascii() and c.isdecimal() else content.piece(i, i + 1)
        )
        if c.isascii() and c.isalpha() and i + 1 < len(content.text):
            parts.append(content.whole(i, i + 1, " "))
    said = join(parts)
    return Mapped(said.text.upper(), said.starts, said.ends, said.readings)


def _telephone(content: Mapped) -> Mapped:
    return code(content, 0, len(content.text))


def _number(content: Mapped) -> Mapped:
    digits = re.sub(r"[,\s]", "", content.text)
    return content.whole(0, len(content.text), cardinal(digits)) if digits.isdecimal() else content


def _ordinal(content: Mapped) -> Mapped:
    digits = re.sub(r"\D", "", content.text)
    return content.whole(0, len(content.text), f"第{cardinal(digits)}") if digits else content


def _date(content: Mapped) -> Mapped:
    match = re.fullmatch(r"\s*(\d{4})(\d{2})(\d{2})\s*", content.text)
    return content.whole(0, len(content.text), "-".join(match.groups())) if match else content


def _same(content: Mapped) -> Mapped:
    return content


_SAY_AS: dict[str, Callable[[Mapped], Mapped]] = {
    "characters": _characters,
    "spell-out": _characters,
    "verbatim": _characters,
    "digits": _telephone,
    "telephone": _telephone,
    "phone": _telephone,
    "cardinal": _number,
    "number": _number,
    "ordinal": _ordinal,
    "date": _date,
    "time": _same,
    "currency": _same,
    "money": _same,
    "unit": _same,
    "measure": _same,
    "fraction": _same,
    "address": _same,
    "name": _same,
    "text": _same,
}
