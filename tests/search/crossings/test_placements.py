"""The best placement by the ratio of two payloads, against every matrix with every program."""

from __future__ import annotations

from fractions import Fraction

import pytest

from p2smt.cluster.file import parse_topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request, parse_axes
from p2smt.result import SearchLimits
from p2smt.search.crossings.on_topology import placement_cells
from p2smt.search.program_synthesis import request_programs
from tests.cli.tools import TINY

LARGE = 2**50
"""Bytes beside which no latency counts."""


def asked(*requests: Request, axes: str = "dp=2,tp=4") -> Problem:
    return Problem(parse_topology(TINY, "tiny"), parse_axes(axes), requests)


DP, TP = Request(RequestKind.ALL_REDUCE, ("dp",), 1), Request(RequestKind.ALL_REDUCE, ("tp",), 1)


def seconds(problem: Problem, matrix: tuple[tuple[int, ...], ...], request: Request) -> float:
    """The best program's time by the numeric model, all programs tried by the search."""
    placement = Placement(matrix)
    if request.kind.has_programs:
        found = request_programs(problem, placement, request, top=1)
        times = [one.seconds for one in found.programs if one.seconds is not None]
        return request.times * min(times, default=0.0)
    scene = Scene.of(problem.topology, placement, problem.axis_indices(request))
    return request.times * scene.fixed_time(request.kind, request.payload_bytes).seconds


@pytest.mark.parametrize(
    "requests",
    [
        (DP, TP),
        (DP, Request(RequestKind.ALL_GATHER, ("tp",), 1, times=3)),
        (Request(RequestKind.ALL_TO_ALL, ("tp",), 1), DP),
        (Request(RequestKind.ALL_REDUCE, ("dp", "tp"), 1), TP),
    ],
    ids=lambda pair: " ".join(map(str, pair)),
)
def test_the_best_of_a_cell_is_best_in_the_numeric_model(requests: tuple[Request, ...]) -> None:
    found = placement_cells(asked(*requests), SearchLimits())
    assert found is not None
    for cell in found.cells:
        high = cell.low + 2 if cell.high is None else cell.high
        ratio = float((cell.low + high) / 2)
        sized = [
            Request(one.kind, one.axes, round(LARGE * scale), one.times)
            for one, scale in zip(requests, (ratio, 1.0), strict=True)
        ]
        problem = asked(*sized)
        every = [
            sum(seconds(problem, matrix, request) for request in sized) for matrix in found.matrices
        ]
        assert every[cell.best[0]] == pytest.approx(min(every), rel=1e-9)


def test_known_cells() -> None:
    found = placement_cells(asked(DP, TP), SearchLimits())
    assert found is not None
    half = Fraction(1, 2)
    assert [(cell.low, cell.high) for cell in found.cells] == [(0, half), (half, None)]
    assert [found.matrices[cell.best[0]] for cell in found.cells] == [
        ((2, 1), (1, 4)),
        ((1, 2), (2, 2)),
    ]


def test_no_time_and_one_request() -> None:
    assert placement_cells(asked(DP, TP), SearchLimits(time_limit_s=0.0)) is None
    with pytest.raises(InputError, match="is of two or more"):
        placement_cells(asked(DP), SearchLimits())
