"""Messages on one line: what is left out of long ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2smt.report.text import MAX_MESSAGE, one_line

NAMES = [
    f"{kind}-all-reduce-of-{n}" for n in range(20) for kind in ("ring", "tree", "hierarchical")
]


@given(st.integers(0, 200), st.integers(200, 900))
def test_a_long_list_is_cut_between_names(before: int, most: int) -> None:
    line = one_line("x" * (before % 50) + " " + ", ".join(NAMES), most)
    assert len(line) <= most
    head, _, tail = line.partition(" [..] ")
    assert {name.rstrip(",") for name in [*head.split()[1:], *tail.split()]} <= set(NAMES)
    assert tail.endswith(NAMES[-1])


@given(st.text(st.characters(codec="ascii"), max_size=3000))
def test_a_line_is_no_longer_than_it_may_be(text: str) -> None:
    line = one_line(text)
    assert len(line) <= MAX_MESSAGE
    assert line.isprintable()


def test_a_long_word_is_cut() -> None:
    line = one_line("file " + "y" * 2000)
    assert line.startswith("file yyy")
    assert len(line) == MAX_MESSAGE
