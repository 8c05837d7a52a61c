"""Tables on narrow screens: no word is cut, nothing is lost without a line that says so."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from p2smt.report.tables import table, table_lines

WORDS = st.text("ab12.;=\u4e2d", min_size=1, max_size=9)
CELLS = st.lists(WORDS, max_size=4).map(" ".join)
TABLES = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.lists(CELLS, min_size=n, max_size=n),
        st.lists(st.lists(CELLS, min_size=n, max_size=n), max_size=4),
        st.lists(st.booleans(), min_size=n, max_size=n),
    )
)


def units(columns: list[str], rows: list[list[str]], right: list[bool]) -> list[str]:
    """What must stay in one piece: words, and whole cells of right-aligned columns."""
    heads = [word for column in columns for word in column.split()]
    cells = [(text, one) for row in rows for text, one in zip(row, right, strict=True)]
    return [*heads, *(part for text, one in cells for part in ([text] if one else text.split()))]


@given(TABLES, st.integers(1, 90))
@example((["name", "what"], [["all-reduce all-gather", "reduce-scatter"]], [False, False]), 26)
@example((["name", "what"], [["alphabetical", "12.5 ms"]], [False, True]), 20)
def test_no_word_is_cut_and_no_line_is_too_wide(
    made: tuple[list[str], list[list[str]], list[bool]], width: int
) -> None:
    columns, rows, right = made
    whole = units(columns, rows, right)
    headings = [">" * one + column for column, one in zip(columns, right, strict=True)]
    lines = table_lines(table("", headings, rows), width)
    if max(map(cell_len, whole), default=0) > width:
        return
    assert max(map(cell_len, lines), default=0) <= width
    shown = Counter(word for line in lines for word in line.split())
    assert not Counter(word for text in whole for word in text.split()) - shown


@given(TABLES, st.integers(1, 90))
def test_columns_left_out_are_named(
    made: tuple[list[str], list[list[str]], list[bool]], width: int
) -> None:
    _, rows, right = made
    columns = [f"c{n}" for n in range(len(right))]
    lines = table_lines(table("", columns, rows, columns[:0:-1]), width)
    said = [line for line in lines if line.startswith("left")]
    text = " ".join(lines)
    gone = text.partition("left out: ")[2].replace(",", "").split() if said else []
    shown = text.partition("left out: ")[0].split()
    assert all((column in shown) != (column in gone) for column in columns) or width < 8


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (80, ["requests", "name     time  runs", "a b   12.5 ms  one after another"]),
        (24, ["requests", "name     time", "a b   12.5 ms", "left out: runs", "(--details)"]),
    ],
)
def test_a_column_is_left_out_where_lines_do_not_fit(width: int, lines: list[str]) -> None:
    columns, rows = ["name", ">time", "runs"], [["a b", "12.5 ms", "one after another"]]
    assert table_lines(table("requests", columns, rows, ["runs"]), width) == lines


def test_columns_that_do_not_fit_follow_below_with_the_first() -> None:
    rows = [["alpha", "12.5 ms", "reduce-scatter"]]
    assert table_lines(table("t", ["name", ">time", "step"], rows), 21) == [
        *("t", "name      time", "alpha  12.5 ms", ""),
        *("name   step", "alpha  reduce-scatter"),
    ]
