"""Long texts are cut where a sentence ends; nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from utterd.engine.passages import ENOUGH, passages

TEXT = st.text(alphabet='我们说。！？，、a b.\n"”…😀', max_size=3000)


@given(TEXT)
def test_joined_they_are_the_text(text):
    cut = passages(text)
    assert "".join(piece for _, piece in cut) == text
    at = 0
    for offset, piece in cut:
        assert offset == at
        at += len(piece)
    assert all(piece for _, piece in cut) or cut == [(0, "")]


def test_a_short_text_stays_whole():
    text = "今天很好。明天也很好。" * 10
    assert len(text) <= ENOUGH
    assert passages(text) == [(0, text)]


def test_the_first_passage_is_the_first_sentence():
    text = "先说这一句。" + "然后说很多别的话。" * 100
    assert passages(text)[0] == (0, "先说这一句。")


def test_later_passages_hold_whole_sentences():
    text = "然后说很多别的话。" * 200
    for _, piece in passages(text)[1:]:
        assert piece.endswith("。")
        assert len(piece) >= 9


def test_a_full_stop_inside_a_number_does_not_end_a_sentence():
    text = "The value is 3.14159 and it goes on. " + "More words follow here. " * 20
    assert passages(text)[0][1] == "The value is 3.14159 and it goes on."


def test_closing_quotes_stay_with_their_sentence():
    text = "他说：“好的。”" + "然后就走了，" * 60
    assert passages(text)[0][1] == "他说：“好的。”"


def test_a_text_without_sentences_is_cut_at_a_gap():
    text = "很长的一段话，" * 300
    cut = passages(text)
    assert len(cut) > 5
    assert all(piece.endswith("，") for _, piece in cut)


def test_a_text_without_gaps_is_cut_all_the_same():
    assert max(len(piece) for _, piece in passages("啊" * 5000)) <= 600
