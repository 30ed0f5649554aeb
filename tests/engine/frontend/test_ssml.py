import pytest
from hypothesis import given
from hypothesis import strategies as st

from utterd.engine.frontend.ssml import SsmlError, parse


def _analyse(reader, body):
    return reader.analyse(f"<speak>{body}</speak>", format="ssml")


def _pinyin(analysis):
    return [s.pinyin for g in analysis.segments for s in g.syllables]


def test_offsets_are_of_the_markup(reader):
    text = "<speak>你<b/>好</speak>".replace("<b/>", '<mark name="m"/>')
    analysis = reader.analyse(text, format="ssml", offset=100)
    syllables = analysis.segments[0].syllables
    assert [text[s.start - 100 : s.end - 100] for s in syllables] == ["你", "好"]
    assert [(m.name, m.first) for m in analysis.segments[0].marks] == [
        ("m", next(i for i, p in enumerate(analysis.segments[0].phonemes) if p.start >= 108))
    ]


def test_break_splits_and_pauses(reader):
    analysis = _analyse(reader, '你好<break time="1.5s"/>世界<break strength="weak"/>再见')
    assert [(g.text, g.pause_ms) for g in analysis.segments] == [
        ("你好", 1500), ("世界", 150), ("再见", 0)
    ]  # fmt: skip


def test_trailing_and_leading_marks_are_kept(reader):
    analysis = _analyse(reader, '<mark name="a"/>你好<break time="300ms"/>世界<mark name="z"/>')
    first, last = analysis.segments
    assert [m.name for m in first.marks] == ["a"]
    assert first.marks[0].first == 0
    assert [m.name for m in last.marks] == ["z"]
    assert last.marks[0].first == len(last.phonemes)


def test_prosody_multiplies_inwards(reader):
    analysis = _analyse(
        reader,
        '甲<prosody rate="150%" pitch="+20%">乙'
        '<prosody rate="slow" volume="loud">丙</prosody></prosody>丁',
    )
    found = [(g.text, g.rate, g.pitch, g.volume) for g in analysis.segments]
    assert found[0] == ("甲", 1.0, 1.0, 1.0)
    assert found[1] == ("乙", 1.5, pytest.approx(1.2), 1.0)
    assert found[2] == ("丙", pytest.approx(1.125), pytest.approx(1.2), pytest.approx(1.35))
    assert found[3] == ("丁", 1.0, 1.0, 1.0)


def test_voice_and_language(reader):
    analysis = _analyse(
        reader, '<voice name="zm_yunxi">你好</voice><lang xml:lang="en-US">5 of 10</lang>'
    )
    assert analysis.segments[0].speaker == "zm_yunxi"
    assert analysis.segments[1].speaker == ""
    assert analysis.normalized == "你好five of ten"
    inside = _analyse(reader, '第5章<lang xml:lang="en">Part 5</lang>第5节')
    assert inside.normalized == "第五章Part five第五节"


@pytest.mark.parametrize(
    ("body", "normalized"),
    [
        ('<say-as interpret-as="telephone">10086</say-as>', "一零零八六"),
        ('<say-as interpret-as="characters">AB1</say-as>', "A B 一"),
        ('<say-as interpret-as="cardinal">1234</say-as>', "一千二百三十四"),
        ('<say-as interpret-as="digits">1234</say-as>', "一二三四"),
        ('<say-as interpret-as="ordinal">3</say-as>', "第三"),
        ('<say-as interpret-as="date">20240305</say-as>', "二零二四年三月五日"),
        ('<sub alias="世界贸易组织">WTO</sub>', "世界贸易组织"),
        ("A &amp; B &lt; C", "A和B小于C"),
    ],
)
def test_say_as_and_sub(reader, body, normalized):
    assert _analyse(reader, body).normalized.replace(" ", "") == normalized.replace(" ", "")


def test_phoneme_gives_the_reading(reader):
    analysis = _analyse(reader, '<phoneme alphabet="pinyin" ph="zhong4 qing4">重庆</phoneme>')
    assert _pinyin(analysis) == ["zhong4", "qing4"]


def test_sentences_and_paragraphs_pause(reader):
    analysis = _analyse(reader, "<p><s>你好</s><s>世界</s></p><p>再见</p>")
    assert [g.text for g in analysis.segments] == ["你好", "世界", "再见"]
    assert analysis.segments[0].pause_ms == 400
    assert analysis.segments[1].pause_ms == 600


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("你好", "wrap the text in <speak>"),
        ("<speak>你好", "no element found"),
        ("<speak><p>你好</speak>", "mismatched tag"),
        ("<p>你好</p>", "outermost element must be <speak>"),
        ("<speak><audio src='a'/></speak>", "<audio> is not supported"),
        ("<speak><break time='soon'/></speak>", "500ms"),
        ("<speak><break time='60s'/></speak>", "longer than"),
        ("<speak><break strength='huge'/></speak>", "x-strong"),
        ("<speak><prosody rate='quick'>a</prosody></speak>", "rate='quick'"),
        ("<speak><emphasis level='much'>a</emphasis></speak>", "level='much'"),
        ("<speak><mark/></speak>", "<mark> needs a name"),
        ("<speak><voice>a</voice></speak>", "<voice> needs a name"),
        ("<speak><lang>a</lang></speak>", "xml:lang"),
        ("<speak><sub>a</sub></speak>", "alias"),
        ("<speak><say-as interpret-as='song'>a</say-as></speak>", "interpret-as='song'"),
        ("<speak><phoneme alphabet='ipa' ph='a'>啊</phoneme></speak>", "only pinyin"),
        ("<speak><phoneme ph='hao3'>你好</phoneme></speak>", "1 syllables for 2 characters"),
        ("<speak><phoneme ph='xx9'>好</phoneme></speak>", "no syllable of Mandarin"),
        ("<!DOCTYPE speak [<!ENTITY a 'b'>]><speak>&a;</speak>", "document type is not allowed"),
        ("<?x y?><speak>a</speak>", "processing instruction is not allowed"),
        ("<speak>" + "<s>" * 40 + "</s>" * 40 + "</speak>", "flatten"),
        ("", "no element found"),
    ],
)
def test_broken_markup_says_what_to_do(text, says):
    with pytest.raises(SsmlError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"line {caught.value.line}, column {caught.value.column}: ")
    assert "\n" not in str(caught.value)


def test_error_names_the_place():
    with pytest.raises(SsmlError) as caught:
        parse("<speak>\n你好<foo/></speak>")
    assert (caught.value.line, caught.value.column) == (2, 3)


@given(st.text(alphabet="<>/&;=\"' abprosdykmn你好一\n\ud83d", max_size=60))
def test_any_text_is_read_or_refused(text):
    for candidate in (text, f"<speak>{text}</speak>"):
        try:
            document = parse(candidate)
        except SsmlError:
            continue
        assert document.text.starts == sorted(document.text.starts)
        assert all(
            0 <= a <= b <= len(candidate)
            for a, b in zip(document.text.starts, document.text.ends, strict=True)
        )


MARK, BREAK = '<mark name="{}"/>', '<break time="{}ms"/>'


def _laid_out(analysis):
    """In order: marks by name, words as text, breaks in ms."""
    found = []
    for segment in analysis.segments:
        names = iter(segment.marks)
        inside = sorted(segment.marks, key=lambda mark: mark.first)
        assert list(names) == inside
        found += [mark.name for mark in inside if mark.first == 0]
        if segment.text:
            found.append(segment.text)
        found += [mark.name for mark in inside if mark.first > 0]
        found += [segment.pause_ms] if segment.pause_ms else []
    return found


@pytest.mark.parametrize(
    ("items", "laid_out"),
    [
        ([700, "你好"], [700, "你好"]),
        (["a", 700, "你好"], ["a", 700, "你好"]),
        (["a", 700, "b", "你好"], ["a", 700, "b", "你好"]),
        ([700, "a", 300, "b", "你好"], [700, "a", 300, "b", "你好"]),
        (["你好", 700], ["你好", 700]),
        (["你好。", 700], ["你好。", 700]),
        (["你好", "a", 700], ["你好", "a", 700]),
        (["你好", 700, "a"], ["你好", 700, "a"]),
        (["你好", "a", 700, "b", 300, "c"], ["你好", "a", 700, "b", 300, "c"]),
        (["你好", "a", 700, "b", 300, "c", "世界"], ["你好", "a", 700, "b", 300, "c", "世界"]),
        (["你好", 700, "a", "世界"], ["你好", 700, "a", "世界"]),
        (["a"], ["a"]),
        (["a", "b"], ["a", "b"]),
        ([700], [700]),
        (["a", 700, "b"], ["a", 700, "b"]),
        (["你好", 200, 700, "世界"], ["你好", 700, "世界"]),
    ],
    ids=str,
)
def test_breaks_and_marks_stand_where_they_are_written(reader, items, laid_out):
    def write(item):
        if isinstance(item, int):
            return BREAK.format(item)
        return MARK.format(item) if item.isascii() else item

    analysis = _analyse(reader, "".join(map(write, items)))
    assert _laid_out(analysis) == laid_out


@given(st.lists(st.sampled_from([100, 700, "a", "b", "你好", "世界。", "，"]), max_size=8))
def test_no_mark_is_lost_and_their_order_is_kept(reader, items):
    written = [
        BREAK.format(i) if isinstance(i, int) else MARK.format(i) if i.isascii() else i
        for i in items
    ]
    analysis = _analyse(reader, "".join(written))
    marks = [mark.name for segment in analysis.segments for mark in segment.marks]
    assert marks == [i for i in items if i in ("a", "b")]
    ends = [0, *(segment.end for segment in analysis.segments)]
    for before, segment in zip(ends, analysis.segments, strict=False):
        assert before <= segment.start <= segment.end
    starts = [segment.start for segment in analysis.segments]
    assert starts == sorted(set(starts)), "each is known by where it begins"
    asked = sum(i for i in items if isinstance(i, int))
    assert sum(segment.pause_ms for segment in analysis.segments) >= min(asked, 100)
