"""What is recorded of one setting: its least set, the check of its certificate, its crossings."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from p2smt.cluster.topology import Piece
from p2smt.collectives.demand import demand_of
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.form import LeastCell, LinkNumbers, bandwidth_cells, payload_cells
from p2smt.plans.crossings.least_set import LeastSet, SymbolicSetting
from p2smt.plans.crossings.least_set_check import check_least_set
from p2smt.programs.check import check_program
from p2smt.programs.program import Program
from p2smt.result import SearchLimits
from p2smt.search.crossings.least import least_set

LATENCY_RATIO = Fraction(4)
LOWEST, HIGHEST = Fraction(1, 1024), Fraction(1024)
"""Bandwidth ratios between which cells of large payloads are looked for."""
SCALE = 2.0**30
"""Bytes per second of an inner port, so that no bandwidth is below one byte per second."""


def answer(setting: SymbolicSetting, limits: SearchLimits) -> dict[str, Any]:
    """The row of a setting; ``seconds`` pass on the wall until the set is proved."""
    found = least_set(setting, limits)
    row: dict[str, Any] = {
        "factors": list(setting.factors),
        "ports": list(setting.ports),
        "kind": setting.kind.value,
        "calls": setting.calls,
        "status": found.status.value,
        "programs": found.programs,
        "costs": len(found.costs),
        "members": [str(found.costs[n].programs[0]) for n in found.members],
        "alone": all(found.alone(n) is not None for n in found.members),
        "cases": sum(len(one.refutation.cases) for one in found.exclusions),
        "certificate": check_least_set(found).valid,
        "seconds": round(found.wall_s, 2),
    }
    if len(setting.factors) == 2 and not setting.calls:
        row["large"] = [_bounds(found, cell) for cell in _large(found)]
        row["agree"], row["confirmed"] = _crossings(found)
    return row


def _large(found: LeastSet) -> tuple[LeastCell, ...]:
    betas = (Fraction(1), Fraction(1))
    return bandwidth_cells([one.form for one in found.costs], betas, 0, LOWEST, HIGHEST)


def _bounds(found: LeastSet, cell: LeastCell) -> list[str | int]:
    """Where a cell of large payloads begins, its best member, and how many costs are equal."""
    member = next(place for place, n in enumerate(found.members) if n in cell.best)
    return [str(cell.low), member, len(cell.best)]


def _crossings(found: LeastSet) -> tuple[bool, int]:
    """Whether the envelope of all programs is that of the members at every ratio looked at, and how
    many of its bounds the numeric model confirms on both sides.

    Raises:
        ValueError: the numeric model contradicts a bound.
    """
    forms, agree, confirmed = [one.form for one in found.costs], True, 0
    (outer, _), ports = found.setting.factors, found.setting.ports[0]
    for ratio in (Fraction(1, 2), Fraction(ports), Fraction(outer * ports, 2), 2 * outer * ports):
        numbers = LinkNumbers(
            Fraction(0), (LATENCY_RATIO, Fraction(1)), (Fraction(ratio), Fraction(1))
        )
        cells = payload_cells(forms, numbers)
        for cell in cells:
            x = cell.low + 1 if cell.high is None else (cell.low + cell.high) / 2
            best = forms[cell.best[0]].seconds(numbers, x)
            agree &= min(forms[n].seconds(numbers, x) for n in found.members) == best
        for before, after in pairwise(cells):
            _confirm(found, numbers, before, after)
            confirmed += 1
    return agree, confirmed


def _confirm(found: LeastSet, numbers: LinkNumbers, before: LeastCell, after: LeastCell) -> None:
    """Price both programs in floating point at 1 - 2^-12 and 1 + 2^-12 times the bound."""
    if before.high is None:
        raise ValueError("the last cell has no bound")
    scene = _with_numbers(found.setting.scene, numbers)
    pair = [found.costs[cell.best[0]].programs[0] for cell in (before, after)]
    for part, first_wins in ((1 - 2**-12, True), (1 + 2**-12, False)):
        payload = round(float(before.high) * part * SCALE)
        first, second = (_seconds(found.setting, scene, one, payload) for one in pair)
        if (first < second) != first_wins:
            text = f"{found.setting}: the numeric model does not cross at {before.high}"
            raise ValueError(text)


def _with_numbers(scene: Scene, numbers: LinkNumbers) -> Scene:
    levels = tuple(
        replace(level, link=replace(level.link, pieces=(Piece("", float(a), SCALE / float(b)),)))
        for level, a, b in zip(
            scene.topology.levels, numbers.latency_s, numbers.s_per_byte, strict=True
        )
    )
    return replace(scene, topology=replace(scene.topology, levels=levels))


def _seconds(setting: SymbolicSetting, scene: Scene, program: Program, payload: int) -> float:
    rows = check_program(demand_of(setting.kind), scene.hierarchy, program).trace.payload_rows
    return sum(time.seconds for time in scene.program_times(program, rows, payload))
