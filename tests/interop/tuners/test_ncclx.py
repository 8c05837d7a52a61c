"""NCCLX's tuner files."""

from __future__ import annotations

import pytest

from p2smt.interop.tuners.choices import Comm, LibraryCall
from p2smt.interop.tuners.nccl import interval, judge_ncclx, split_row
from p2smt.interop.tuners.rules import ANY

COMM = Comm(2, 4)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("*", ANY),
        ("", ANY),
        ("8", (8, 8)),
        ("-1", (-1, -1)),
        ("[1,4)", (1, 3)),
        ("(1,4]", (2, 4)),
        ("(1,)", (2, ANY[1])),
        ("(,4]", (ANY[0], 4)),
        ("[ 1 , 4 ]", (1, 4)),
    ],
)
def test_an_interval(text: str, span: tuple[int, int]) -> None:
    assert interval(text) == span


def test_commas_in_brackets_part_nothing() -> None:
    assert split_row("reduce,[0,4), ring ,,") == ["reduce", "[0,4)", "ring", "", ""]


def test_sizes_are_parts_of_a_rank() -> None:
    found = judge_ncclx("allreduce,[2,4),tree,ll,-1,2,4\n  # note\n", [COMM])
    assert found.faults == ()
    tree = LibraryCall("tree", "ll")
    sizes = [15, 16, 31, 32]
    at = [found.choices.at("allreduce", COMM, size) for size in sizes]
    assert at == [None, tree, tree, None]


@pytest.mark.parametrize(
    "row",
    [
        "colltype,bytes,algorithm,protocol,channels,nodes,ranks",
        "allreduce,[4,2],tree,ll,-1,2,4",
        "allreduce,64K,tree,ll,-1,2,4",
        "allreduce,*,Tree,ll,-1,2,4",
        "allreduce,*,tree,ll,-1,2",
        "allreduce,*,tree,ll,x,2,4",
        "allreduce,*,tree,ll,-1,2,4,-5",
        "allreduce,*,tree,ll,99999999999,2,4",
        "allreduce,[1,2,3],tree,ll,-1,2,4",
        "allreduce,[,tree,ll,-1,2,4",
    ],
)
def test_one_bad_row_and_nothing_starts(row: str) -> None:
    found = judge_ncclx(f"allreduce,*,tree,ll,-1,2,4\n{row}", [COMM])
    assert [(fault.name, fault.line) for fault in found.faults] == [("aborts", 2)]
    assert found.choices.rows == ()


def test_minus_one_is_no_wildcard() -> None:
    found = judge_ncclx("allreduce,*,tree,ll,-1,-1,4", [COMM])
    assert [fault.name for fault in found.faults] == ["wildcard"]
    assert found.choices.at("allreduce", COMM, 4) is None


def test_rows_that_match_two_ranges_are_one_after_the_other() -> None:
    found = judge_ncclx("reduce,*,ring,simple,4,*,*\nreduce,(,8],tree,ll,0,*,*", [COMM])
    assert [(fault.name, fault.line) for fault in found.faults] == [("unreachable", 2)]
    assert found.choices.at("reduce", COMM, 0) == LibraryCall("ring", "simple", (("channels", 4),))
