"""Cells over a payload with a library, with trees and on every matrix: by the numeric model."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from p2smt.cluster.file import load_topology
from p2smt.collectives.demand import demand_of, plain_kind
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.curve_cells import settled_cells
from p2smt.cost.symbolic.curves import RootSum
from p2smt.cost.symbolic.steps import symbolic_program
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request, parse_axes
from p2smt.programs.check import check_program
from p2smt.programs.program import Program
from p2smt.result import SearchLimits
from p2smt.search.crossings.on_topology import PayloadCells, PlacedForm, payload_crossings
from p2smt.search.program_synthesis import Task, list_programs
from tests.tiers import but_the_first

BESIDE = Fraction(1, 2**40)
DP = Request(RequestKind.ALL_REDUCE, ("dp",), 1)
ASKED = {
    "azure-ndv4": ("azure-ndv4", False, "dp=16", DP),
    "dgx-h100": ("dgx-h100:4", False, "dp=32", DP),
    "nominal trees": ("dgx-a100:2", True, "dp=16", DP),
    "every matrix": ("azure-ndv4", False, "dp=4,tp=4", DP),
    "gather": ("dgx-h100", False, "dp=16", Request(RequestKind.ALL_GATHER, ("dp",), 1)),
    "gloo": ("paper-gcp-v100:2", True, "dp=16", DP),
}


@cache
def problem(name: str) -> Problem:
    preset, nominal, axes, request = ASKED[name]
    topology = load_topology(preset)
    if nominal:
        topology = topology.nominal()
    if name == "gloo":
        topology = topology.under("gloo")
    return Problem(topology, parse_axes(axes), (request,), max_length=3)


@cache
def found(name: str) -> PayloadCells:
    cells = payload_crossings(problem(name), None, SearchLimits())
    assert cells is not None
    assert cells.complete
    return cells


def seconds(name: str, matrix: tuple[tuple[int, ...], ...], program: Program, x: float) -> float:
    """By the numeric model, whose payloads may be parts of bytes."""
    asked = problem(name)
    scene = Scene.of(asked.topology, Placement(matrix), asked.axis_indices(asked.requests[0]))
    checked = check_program(demand_of(asked.requests[0].kind), scene.hierarchy, program)
    shares = [rows / scene.hierarchy.size for rows in checked.trace.payload_rows]
    return sum(
        scene.step_time(one.collective, scene.hierarchy.grouping(one), share * x).seconds
        for one, share in zip(program.instructions, shares, strict=True)
    )


def every(name: str) -> list[tuple[tuple[tuple[int, ...], ...], Program]]:
    """Every program on every matrix, listed anew."""
    asked, pairs = problem(name), []
    for matrix in {one.matrix for one in found(name).forms}:
        scene = Scene.of(asked.topology, Placement(matrix), asked.axis_indices(asked.requests[0]))
        task = Task(plain_kind(asked.requests[0].kind), scene.hierarchy, asked.max_length)
        listed, _ = list_programs(task, SearchLimits())
        pairs += [(matrix, program) for program in listed.value or ()]
    return pairs


@pytest.mark.parametrize("name", but_the_first(*ASKED))
def test_the_best_of_a_cell_is_best_in_the_numeric_model_on_both_sides_of_each_bound(
    name: str,
) -> None:
    cells, pairs = found(name), every(name)
    for cell in cells.cells:
        best = cells.forms[cell.best[0]]
        high = cell.low * 4 + 1000 if cell.high is None else cell.high
        points = [cell.low * (1 + BESIDE) or Fraction(1), high * (1 - BESIDE)]
        for x in map(float, [*points, (cell.low + high) / 2]):
            least = min(seconds(name, *pair, x) for pair in pairs)
            assert seconds(name, best.matrix, best.program, x) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("name", but_the_first(*ASKED))
def test_each_form_has_the_time_of_the_numeric_model_in_its_cells(name: str) -> None:
    """Numbers put into the exact cost give the model, wherever it says that a form holds."""
    numbers, done = found(name).numbers, 0
    for matrix, program in every(name)[:12]:
        asked = problem(name)
        scene = Scene.of(asked.topology, Placement(matrix), asked.axis_indices(asked.requests[0]))
        checked = check_program(demand_of(asked.requests[0].kind), scene.hierarchy, program)
        cost = symbolic_program(scene, program, checked.trace.payload_rows)
        for cell in settled_cells(cost, numbers):
            ends = [] if cell.high is None else [cell.high * (1 - BESIDE)]
            for x in [cell.low * (1 + BESIDE), *ends]:
                at = Fraction(float(x))
                values = [form.value(numbers, at) for form in cell.forms]
                least = min(map(float, values))
                expected = seconds(name, matrix, program, float(x))
                assert least == pytest.approx(expected, rel=1e-13)
                assert float(cost.value(numbers, at)) == pytest.approx(expected, rel=1e-13)
                done += 1
    assert done >= 12


def test_a_root_lies_between_its_bounds_exactly() -> None:
    """At the end of one cell its best is strictly less, where the next begins the other."""
    cells, roots = found("nominal trees"), 0
    for before, after in zip(cells.cells, cells.cells[1:], strict=False):
        assert before.high is not None
        first, second = (cells.forms[one.best[0]] for one in (before, after))
        if before.high < after.low:
            roots += 1
            assert after.low / before.high - 1 < Fraction(1, 2**40)
            assert _sign(cells, first, second, before.high) < 0
            assert _sign(cells, first, second, after.low) > 0
    assert roots >= 1


def _sign(cells: PayloadCells, first: PlacedForm, second: PlacedForm, x: Fraction) -> int:
    one, other = (form.form.value(cells.numbers, x) for form in (first, second))
    assert isinstance(one, RootSum)
    return one.plus(other, -1).sign()


def test_known_bounds_of_a_library_and_of_its_programs() -> None:
    """NCCL's table of corrections changes at powers of two; LL gives way to LL128 at 145 KiB."""
    cells = found("azure-ndv4")
    ends = [cell.high for cell in cells.cells]
    assert Fraction(16776000, 113) in ends
    assert Fraction(2**22) in ends
    assert cells.forms[cells.cells[0].best[0]].ways == ("tree ll",)


def test_what_cannot_be_asked_is_refused() -> None:
    asked = problem("azure-ndv4")
    send = Request(RequestKind.SEND, ("dp",), 1)
    for requests, rule in (((DP, DP), "of one request"), ((send,), "one fixed step")):
        other = Problem(asked.topology, asked.axes, requests)
        with pytest.raises(InputError, match=rule):
            payload_crossings(other, None, SearchLimits())


def test_no_time_gives_no_cells() -> None:
    none = SearchLimits(time_limit_s=0.0)
    assert payload_crossings(problem("azure-ndv4"), None, none) is None
