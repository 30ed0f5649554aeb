from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utterd.engine.frontend.stream import MAX_LENGTH, TextStream


def _run(pieces, *, flush_every=0):
    stream = TextStream()
    ready = []
    for n, piece in enumerate(pieces, 1):
        ready += stream.push(piece)
        if flush_every and n % flush_every == 0:
            ready += stream.flush()
    return ready + stream.finish()


def _texts(pieces):
    return [piece.text for piece in _run(pieces)]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("今天天气很好。我们出去吧！", ["今天天气很好。", "我们出去吧！"]),
        ("前方五百米右转，然后直行。", ["前方五百米右转，", "然后直行。"]),
        ("好，我们走。", ["好，我们走。"]),
        ("大约3.5公里，8:30到。", ["大约3.5公里，", "8:30到。"]),
        ("价格1,299.00元。", ["价格1,299.00元。"]),
        ("版本v1.2.3，地址www.a.com。", ["版本v1.2.3，", "地址www.a.com。"]),
        ("Dr. Smith arrived. He sat.", ["Dr. Smith arrived. ", "He sat."]),
        ("See e.g. this one, please.", ["See e.g. this one, ", "please."]),
        ("Go to https://a.com/b?c=1 now.", ["Go to https://a.com/b?c=1 now."]),
        ("他说：“走吧。”然后走了。", ["他说：“走吧。”", "然后走了。"]),
        ("（不，不是这样）好的。", ["（不，不是这样）好的。"]),
        ("第一行\n第二行", ["第一行\n", "第二行"]),
    ],
)
def test_hands_out_clauses(text, clauses):
    assert _texts([text]) == clauses


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("距离3.", "5公里。", "距离3.5公里。"),
        ("时间8:", "30。", "时间8:30。"),
        ("版本1.", "2.3。", "版本1.2.3。"),
        ("一共1,", "000元。", "一共1,000元。"),
        ("I met Dr.", " Smith.", "I met Dr. Smith."),
        ("打开https:", "//a.com。", "打开https://a.com。"),
    ],
)
def test_what_the_next_piece_may_undo_waits(first, second, joined):
    stream = TextStream()
    assert stream.push(first) == []
    assert [p.text for p in stream.push(second) + stream.finish()] == [joined]


def test_flush_gives_what_waits_but_not_half_a_word():
    stream = TextStream()
    assert stream.push("导航到KF") == []
    assert [p.text for p in stream.flush()] == ["导航到"]
    assert stream.push("C餐厅") == []
    assert [(p.text, p.offset) for p in stream.flush()] == [("KFC餐厅", 3)]
    assert stream.flush() == []


def test_flush_keeps_half_a_surrogate_pair():
    stream = TextStream()
    stream.push("笑脸\ud83d")
    assert [p.text for p in stream.flush()] == ["笑脸"]
    stream.push("\ude00")
    assert [p.text for p in stream.finish()] == ["\ud83d\ude00"]


def test_a_text_without_an_end_is_cut():
    pieces = _run(["车" * 1000])
    assert all(len(piece.text) <= MAX_LENGTH for piece in pieces)


TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("。，！？,.!?:;3.5一二 \n“”（）()\"'ab/@:\u0301\u200d")),
        st.characters(),
        st.characters(categories=["Cs"]),
    ),
    max_size=300,
)


@given(TEXT, st.lists(st.integers(0, 300), max_size=12), st.integers(0, 3))
def test_pieces_together_are_the_text(text, cuts, flush_every):
    bounds = sorted({0, len(text), *(c for c in cuts if c < len(text))})
    pushed = [text[a:b] for a, b in pairwise(bounds)]
    ready = _run(pushed, flush_every=flush_every)
    assert "".join(piece.text for piece in ready) == text
    at = 0
    for piece in ready:
        assert piece.text
        assert piece.offset == at
        at += len(piece.text)
