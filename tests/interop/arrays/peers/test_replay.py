"""Moves of whole axes become steps only where a step's own rule allows it."""

from __future__ import annotations

import pytest

from p2smt.interop.arrays.peers.peer_replay import AxisMove, first_inside, replayed
from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.steps import StepKind
from p2smt.resharding.types import ArrayType, ElementType, parse_layout, parse_mesh

MESH = parse_mesh("a=2,b=6")


def ends(source: str, target: str) -> tuple[Ends, ...]:
    first, last = (
        ArrayType(MESH, (24, 24), ElementType.F32, parse_layout(text, MESH))
        for text in (source, target)
    )
    return ends_of(first, last)


def move(kind: StepKind | None, axes: str, lost: int | None, gained: int | None) -> AxisMove:
    return AxisMove(kind, tuple("ab".index(axis) for axis in axes), lost, gained, f"moves {axes}")


GATHER_A = move(StepKind.ALL_GATHER, "a", 0, None)
GATHER_B = move(StepKind.ALL_GATHER, "b", 0, None)


def test_an_axis_moves_with_all_its_digits() -> None:
    one = ends("S(a,b),R", "R,S(b)")[0]
    path = replayed(one, [move(StepKind.ALL_TO_ALL, "b", 0, 1), GATHER_A])
    assert not path.outside
    assert [step.kind for step in path.steps] == [StepKind.ALL_TO_ALL, StepKind.ALL_GATHER]
    assert path.steps[0].moved == (1, 2)
    assert path.steps[-1].after == one.target


def test_partials_are_reduced() -> None:
    one = ends("R,R;P(a);P(b)", "R,S(b)")[0]
    path = replayed(
        one,
        [move(StepKind.REDUCE_SCATTER, "b", None, 1), move(StepKind.ALL_REDUCE, "a", None, None)],
    )
    assert not path.outside


@pytest.mark.parametrize(
    ("moves", "outside", "steps"),
    [
        ([GATHER_A], "moves a: step all-gather: digits leave the end of a list", 0),
        ([GATHER_B], "it does not end in the type that was asked for", 1),
        ([GATHER_B, move(None, "a", None, None)], "moves a is none of the six steps", 1),
    ],
)
def test_what_is_no_step_is_said(moves: list[AxisMove], outside: str, steps: int) -> None:
    path = replayed(ends("S(a,b),R", "R,R")[0], moves)
    assert (path.outside, len(path.steps)) == (outside, steps)


def test_the_first_frame_that_fits_is_taken() -> None:
    all_ends = ends("S(a,b),R", "R,R")
    assert len(all_ends) == 2  # 6 = 2 x 3 and 3 x 2
    found, path = first_inside(all_ends, [GATHER_B, GATHER_A])
    assert found == all_ends[0]
    assert not path.outside
    found, path = first_inside(all_ends, [GATHER_A])
    assert found == all_ends[-1]
    assert path.outside
