"""Cells of ratios and payloads: the known ones, and each bound confirmed by the numeric model."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from p2smt.cluster.topology import Piece
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.plans.crossings.least_set import SymbolicSetting
from p2smt.programs.check import check_program
from p2smt.programs.program import Program
from p2smt.result import SearchLimits
from p2smt.search.crossings.least import CrossingTable, LevelRatios, crossing_table, least_set

ONE = Fraction(1)
LARGE = 2.0**50
"""Times are scaled, as a bandwidth is at least one byte per second."""


def ratios(latency: int, *bandwidths: str) -> tuple[LevelRatios, ...]:
    numbers = [(Fraction(text), ONE) for text in bandwidths]
    return tuple(LevelRatios((Fraction(latency), ONE), one, Fraction(0)) for one in numbers)


def table(setting: SymbolicSetting, rows: tuple[LevelRatios, ...]) -> CrossingTable:
    found = crossing_table(setting, rows, SearchLimits())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("factors", "ports", "low", "high"),
    [((2, 8), (1, 1), "1/8", "2"), ((4, 8), (1, 1), "1/8", "4"), ((4, 8), (8, 1), "1", "32")],
)
def test_where_the_flat_program_wins_for_large_payloads(
    factors: tuple[int, ...], ports: tuple[int, ...], low: str, high: str
) -> None:
    found = table(SymbolicSetting(factors, ports, calls=False), ratios(1, "1/64", "64"))
    tied, flat, nested = found.large
    assert (flat.low, flat.high) == (Fraction(low), Fraction(high))
    assert [len(found.forms[n.best[0]].programs[0]) for n in (flat, nested)] == [1, 3]
    assert len(tied.best) > 1


def test_known_payloads() -> None:
    found = table(SymbolicSetting((4, 8), (8, 1), calls=False), ratios(4, "12", "24"))
    ends = [[cell.high for cell in row.cells] for row in found.rows]
    assert ends == [[Fraction(192, 5), None], [96, None]]


def scene_with(setting: SymbolicSetting, at: LevelRatios) -> Scene:
    """The setting's scene with numbers for the numeric model."""
    scene = setting.scene
    levels = tuple(
        replace(
            level,
            link=replace(level.link, pieces=(Piece("", float(alpha), LARGE / float(beta)),)),
        )
        for level, alpha, beta in zip(scene.topology.levels, at.latency, at.bandwidth, strict=True)
    )
    return replace(scene, topology=replace(scene.topology, levels=levels))


def seconds(scene: Scene, program: Program, payload: int) -> float:
    checked = check_program(demand_of(RequestKind.ALL_REDUCE), scene.hierarchy, program)
    times = scene.program_times(program, checked.trace.payload_rows, payload)
    return sum(time.seconds for time in times)


@pytest.mark.parametrize("ports", [(1, 1), (8, 1)])
def test_every_bound_is_confirmed_on_both_sides_by_the_numeric_model(
    ports: tuple[int, ...],
) -> None:
    setting = SymbolicSetting((4, 8), ports, calls=False)
    found = table(setting, ratios(4, "1", "2", "4", "8", "12", "24"))
    confirmed = 0
    for row in found.rows:
        scene = scene_with(setting, row.ratios)
        for before, after in zip(row.cells, row.cells[1:], strict=False):
            assert before.high is not None
            pair = [found.forms[one.best[0]].programs[0] for one in (before, after)]
            for side, part in ((0, 1 - Fraction(1, 2**40)), (1, 1 + Fraction(1, 2**40))):
                payload = round(before.high * part * int(LARGE))
                first, second = (seconds(scene, program, payload) for program in pair)
                assert (first < second) == (side == 0)
                every = (seconds(scene, one.programs[0], payload) for one in found.forms)
                assert min(first, second) == pytest.approx(min(every), rel=1e-12)
                confirmed += 1
    assert confirmed >= 4


@pytest.mark.parametrize(("outer", "inner", "ports"), [(2, 2, 1), (3, 4, 4), (4, 3, 1)])
def test_what_is_best_somewhere_costs_what_a_member_of_the_least_set_costs(
    outer: int, inner: int, ports: int
) -> None:
    setting = SymbolicSetting((outer, inner), (ports, 1), calls=False)
    least = least_set(setting, SearchLimits())
    members = [least.costs[n].form for n in least.members]
    found = table(setting, ratios(3, "1/4", "1/2", "1", "2", "4", "8"))
    for row in found.rows:
        for cell in row.cells:
            x = cell.low + 1 if cell.high is None else (cell.low + cell.high) / 2
            best = found.forms[cell.best[0]].form.seconds(row.ratios.numbers, x)
            assert min(form.seconds(row.ratios.numbers, x) for form in members) == best


def test_no_time_gives_no_cells() -> None:
    limits = SearchLimits(time_limit_s=0.0)
    assert crossing_table(SymbolicSetting((2, 2), (1, 1)), ratios(1, "1"), limits) is None


def test_ratios_that_are_not_positive_are_refused() -> None:
    for latency, bandwidth, call in ((0, 1, 0), (1, 0, 0), (1, 1, -1), (2**41, 1, 0)):
        with pytest.raises(InputError):
            LevelRatios((Fraction(latency), ONE), (Fraction(bandwidth), ONE), Fraction(call))
    with pytest.raises(InputError, match="must be for 3 levels"):
        crossing_table(SymbolicSetting((2, 2, 2), (1, 1, 1)), ratios(1, "1"), SearchLimits())
