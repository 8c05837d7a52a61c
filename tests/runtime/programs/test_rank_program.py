"""The order of pipelined pieces."""

from __future__ import annotations

import itertools

import pytest

from p2smt.runtime.programs.rank_program import pipeline_order


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize("pieces", [1, 2, 3, 8])
def test_each_piece_takes_each_step_once_and_in_order(steps: int, pieces: int) -> None:
    order = list(pipeline_order(steps, pieces))
    assert sorted(order) == list(itertools.product(range(pieces), range(steps)))
    for piece in range(pieces):
        assert [step for p, step in order if p == piece] == list(range(steps))
    for step in range(steps):
        assert [p for p, s in order if s == step] == list(range(pieces))


def test_pieces_are_on_their_way_together() -> None:
    assert list(pipeline_order(2, 3)) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    ticks = [piece + step for piece, step in pipeline_order(3, 4)]
    assert ticks == sorted(ticks)
    assert list(pipeline_order(0, 3)) == []
