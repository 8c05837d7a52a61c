"""Host lists: what they stand for, what they cannot be, and writing them back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.hostlist import MAX_HOSTS, MAX_NAME, format_hostlist, parse_hostlist
from p2smt.errors import InputError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("login1", ["login1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,2]x,a.b-c", ["n08x", "n09x", "n10x", "n2x", "a.b-c"]),
        ("r[1-2]n[3-4]", ["r1n3", "r1n4", "r2n3", "r2n4"]),
        (" a , b ", ["a", "b"]),
        ("a,a", ["a", "a"]),
    ],
)
def test_what_a_list_stands_for(text: str, names: list[str]) -> None:
    assert list(parse_hostlist(text)) == names


@pytest.mark.parametrize(
    "text",
    ["", "a,,b", "n[1", "n1]", "n[[1]]", "n[]", "n[3-1]", "n[a]", "n[1-]", "a b", "n[1-2-3]"],
)
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(InputError):
        parse_hostlist(text)


@pytest.mark.parametrize(
    "text", ["n[1-999999999]", "a[0-2000]b[0-2000]", "n[1-600000],m[1-600000]"]
)
def test_names_are_counted_before_they_are_written_out(text: str) -> None:
    with pytest.raises(InputError, match=f"more than {MAX_HOSTS}"):
        parse_hostlist(text)


@given(st.lists(st.from_regex(r"[a-z]{0,2}[0-9]{0,3}[a-z.-]{0,2}", fullmatch=True).filter(bool)))
def test_written_lists_are_read_back(names: list[str]) -> None:
    if names:
        assert list(parse_hostlist(format_hostlist(names))) == names


def test_runs_are_folded() -> None:
    names = [f"n{i:03d}" for i in range(1, 2001)]
    assert format_hostlist(names) == "n[001-2000]"
    assert format_hostlist(["n9", "n10", "n12", "m"]) == "n[9-10,12],m"


def test_a_name_with_a_bracket_cannot_be_written() -> None:
    with pytest.raises(InputError, match="no host list can hold"):
        format_hostlist(["n[1]"])


def test_names_are_of_bounded_length() -> None:
    longest = "n" * (MAX_NAME - 3)
    assert len(parse_hostlist(f"{longest}[001-100]")) == 100
    with pytest.raises(InputError, match="a name is longer than 255"):
        parse_hostlist(f"{longest}n[001-100]")
    with pytest.raises(InputError, match="is longer than 255"):
        format_hostlist(["n" * (MAX_NAME + 1)])
