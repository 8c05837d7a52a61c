"""What `solve` tells a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from p2smt.collectives.names import RequestKind
from p2smt.plans.restrictions import conflict_text
from p2smt.plans.solution import (
    Alternative,
    RankOrder,
    RequestAnswer,
    Solution,
    faster_orders,
)
from p2smt.programs.basis import basis_text
from p2smt.report.comparisons import alternatives, comparison_table, near_line, sensitivity
from p2smt.report.costs.gain_lines import gain_lines
from p2smt.report.costs.request_table import answered, layout_table, peak_line, request_table
from p2smt.report.explained.explanation_text import explanation_lines
from p2smt.report.tables import bound_text
from p2smt.result import Status
from p2smt.units import format_time

_SHARDS_SHOWN = 16


def _counted(solution: Solution) -> bool:
    """Whether a line says how many placements are near: not above their list, nor "at least 0"."""
    near = solution.near
    if near is None or (near.listed and near.alternatives):
        return False
    return near.listed or near.status is Status.COMPLETE or bool(near.alternatives)


def solution_tables(solution: Solution) -> RenderableType:
    """The answer, its requests step by step, the next best ones, and what it is compared with."""
    best = solution.best
    if best is None:
        return _nothing(solution)
    parts: list[RenderableType] = [_headline(solution, best), "", _matrix_table(solution, best), ""]
    topology = solution.problem.topology
    requests = [answered(answer, topology) for answer in best.requests]
    parts += [request_table(requests), "", *_notes(solution, best)]
    parts += alternatives(solution)
    if _counted(solution):
        parts += [near_line(solution), ""]
    parts.append(comparison_table(solution, best))
    if solution.sensitivity:
        parts += ["", *sensitivity(solution.sensitivity)]
    if solution.explanation is not None:
        parts += ["", *explanation_lines(solution, best, solution.explanation)]
    return Group(*parts)


def _nothing(solution: Solution) -> str:
    if solution.interrupted:
        text = "interrupted: no plan had been found"
    elif solution.status is Status.INFEASIBLE:
        return _infeasible(solution)
    elif solution.limits.time_limit_s is None:
        text = f"{solution.status.value}: no plan was found, nor a proof that there is none"
    else:
        text = f"{solution.status.value}: no plan was found within the time limit; give it more"
    bound = solution.bound_s
    return text + (f"\nproved bound {format_time(bound)}" if bound > 0 else "")


def _infeasible(solution: Solution) -> str:
    """The restrictions that leave no answer, if they are known."""
    if not solution.conflict:
        return "infeasible: no matrix obeys the restrictions with a program for every request"
    return f"infeasible: {conflict_text(solution.conflict)}"


def _headline(solution: Solution, best: Alternative) -> str:
    bounds = bound_text("proved", solution.bound_s, best.objective_s)
    if solution.bounded:
        links = bound_text("link-level", solution.physical_bound_s, best.objective_s)
        bounds = f"{bounds}, {links}"
    what = "total" if solution.problem.objective == "sum" else "largest request"
    lines = [
        f"{solution.status.value}: {format_time(best.objective_s)} per iteration ({what})",
        bounds,
        peak_line(best.peak_bytes),
    ]
    lines += gain_lines(solution)
    if solution.interrupted:
        lines.insert(0, "interrupted: the best found so far")
    lines += [f"note: {note}" for note in solution.notes]
    for order in faster_orders(solution):
        lines.append(
            f"note: the {order.name} layout is faster ({format_time(order.objective_s)}), "
            f"{_kept_out(order)}"
        )
    return "\n".join(lines)


def _kept_out(order: RankOrder) -> str:
    """Why a faster rank order is not the answer."""
    if order.breaks:
        return f"but the restrictions exclude it: {'; '.join(order.breaks)}"
    if order.matrix is not None:
        return "but the search ended before it was tried"
    return "but no matrix expresses it, and of such orders only the default layout is tried"


def _matrix_table(solution: Solution, best: Alternative) -> Group:
    sizes = [(axis.name, axis.size) for axis in solution.problem.axes]
    names = solution.problem.topology.names
    return layout_table(sizes, names, best.matrix, best.placement.text())


def _notes(solution: Solution, best: Alternative) -> list[str]:
    """What the programs were checked on, why none is missed, and the shards of each group."""
    with_programs = [answer for answer in best.requests if answer.program is not None]
    hows = dict.fromkeys(answer.checked for answer in with_programs)
    notes = [
        f"checked on {how}"
        + (f": {', '.join(str(p.request) for p in with_programs if p.checked == how)}")
        * (len(hows) > 1)
        for how in hows
    ]
    if notes and solution.status is Status.OPTIMAL and solution.bases:
        notes = _with_basis(notes, basis_text(solution.bases))
    notes += [
        f"{answer.request}: {_shard_order(answer, by_rank=best.rank_list is not None)}"
        for answer in with_programs
        if answer.request.kind is RequestKind.REDUCE_SCATTER
        and answer.shards != tuple(range(answer.hierarchy.size))
    ]
    return [*notes, ""] if notes else []


def _with_basis(notes: list[str], basis: str) -> list[str]:
    """In one line with what was checked, if that is one."""
    if len(notes) == 1:
        return [f"{notes[0]}; programs {basis}"]
    return [*notes, f"programs {basis}"]


def _shard_order(answer: RequestAnswer, by_rank: bool) -> str:
    if answer.shards is None:
        return f"the order of the shards is not computed for groups of {answer.hierarchy.size}"
    order = "rank" if by_rank else "device"
    return f"the members of a group, in {order} order, end with shards {_listed(answer.shards)}"


def _listed(shards: Sequence[int]) -> str:
    shown = ", ".join(map(str, shards[:_SHARDS_SHOWN]))
    return shown if len(shards) <= _SHARDS_SHOWN else f"{shown}, .. ({len(shards)} in all)"
