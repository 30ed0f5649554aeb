import pytest
from hypothesis import given
from hypothesis import strategies as st

from utterd.sysconfig.cpus import format_list, format_mask, parse_list, parse_mask

SETS = st.frozensets(st.integers(0, 200))


@given(SETS)
def test_what_is_written_is_read_back(cpus):
    assert parse_list(format_list(cpus)) == cpus
    assert parse_mask(format_mask(cpus)) == cpus


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", []), ("0", [0]), ("0-2,5", [0, 1, 2, 5]), ("3,1-2", [1, 2, 3]), (" 1 , 2 ", [1, 2])],
)
def test_lists_as_the_kernel_writes_them(text, cpus):
    assert parse_list(text) == set(cpus)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("f", [0, 1, 2, 3]), ("00000001,00000000", [32]), ("0", []), ("8,00000001", [0, 35])],
)
def test_masks_as_the_kernel_writes_them(text, cpus):
    assert parse_mask(text) == set(cpus)


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1-b", "0 1"])
def test_no_list_says_how_to_write_one(text):
    with pytest.raises(ValueError, match="0-2,5"):
        parse_list(text)
