"""Text in pieces, characters cut in two included."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from utterd.daemon.arriving import Arriving
from utterd.daemon.halves import mend, split_half

KEY = ("client", "id")


def utf16_units(text: str) -> list[str]:
    """The text as a client that counts in UTF-16 sees it."""
    data = text.encode("utf-16-le")
    return [chr(int.from_bytes(data[i : i + 2], "little")) for i in range(0, len(data), 2)]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.data())
def test_any_cut_gives_the_whole_text_back(text, data):
    units = utf16_units(text)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(units)), max_size=6)) | {0, len(units)})
    arriving = Arriving(flush_ns=1, end_ns=2)
    whole, pieces = arriving.begin(KEY, "", 0)
    for begin, end in pairwise(cuts):
        came, ready = arriving.push(KEY, "".join(units[begin:end]), 0)
        whole += came
        pieces += ready
    pieces += arriving.finish(KEY)
    assert whole == text
    assert "".join(piece.text for piece in pieces) == text
    assert all(text[p.offset : p.offset + len(p.text)] == p.text for p in pieces)


def test_a_half_that_stays_alone_is_replaced():
    assert mend("a\udc00b\ud800") == "a\ufffdb\ufffd"
    assert split_half("a\ud83d") == ("a", "\ud83d")
    assert split_half("a") == ("a", "")
    assert split_half("") == ("", "")
