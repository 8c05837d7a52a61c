"""What `solve` tells a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from p2smt.collectives.names import RequestKind
from p2smt.plans.solution import Alternative, RankOrder, RequestAnswer, Solution, faster_orders
from p2smt.report.comparisons import alternatives, comparison_table, sensitivity
from p2smt.report.tables import gap, table, times_title
from p2smt.result import Status
from p2smt.units import format_bytes, format_time

_SHARDS_SHOWN = 16


def solution_tables(solution: Solution) -> RenderableType:
    """The answer, its requests step by step, the next best ones, and what it is compared with."""
    best = solution.best
    if best is None:
        return _nothing(solution)
    parts: list[RenderableType] = [_headline(solution, best), "", _matrix_table(solution, best), ""]
    parts += [_request_table(best), "", *_notes(best)]
    if len(solution.alternatives) > 1:
        parts += alternatives(solution)
    parts.append(comparison_table(solution, best))
    if solution.sensitivity:
        parts += ["", *sensitivity(solution.sensitivity)]
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
    """The restrictions that exclude each other, if they are known."""
    if not solution.conflict:
        return "infeasible: no placement obeys the rules and has a program for every request"
    return f"infeasible: these restrictions exclude each other: {'; '.join(solution.conflict)}"


def _headline(solution: Solution, best: Alternative) -> str:
    bound, physical = solution.bound_s, solution.physical_bound_s
    what = "total" if solution.problem.objective == "sum" else "largest request"
    lines = [
        f"{solution.status.value}: {format_time(best.objective_s)} per iteration ({what})",
        f"proved bound {format_time(bound)} (gap {gap(best.objective_s, bound)}), "
        f"link-level bound {format_time(physical)} (gap {gap(best.objective_s, physical)})"
        if best.matrix is not None
        else "proved bound none",
        f"peak memory per device {format_bytes(best.peak_bytes)}",
    ]
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
    """Why a faster rank order is not the answer: else it would have been searched."""
    if order.matrix is not None or order.name == "default":
        return "but the restrictions exclude it"
    return "but no matrix expresses it, and of such orders only the default layout is tried"


def _matrix_table(solution: Solution, best: Alternative) -> Group:
    axes, names = solution.problem.axes, solution.problem.topology.names
    if best.matrix is None:
        rows = [[axis.name, str(axis.size)] for axis in axes]
        return Group(
            table("axes, outermost first", ["axis", ">size"], rows),
            f"no matrix expresses this order; devices of ranks 0, 1, ..: {best.placement.text()}",
        )
    rows = [
        [axis.name, str(axis.size), *map(str, row)]
        for axis, row in zip(axes, best.matrix, strict=True)
    ]
    return table("placement", ["axis", ">size", *(f">{name}" for name in names)], rows)


def _request_table(best: Alternative) -> Group:
    rows = []
    for answer in best.requests:
        open_ = "" if answer.status is Status.OPTIMAL else f" ({answer.status.value})"
        rows.append([f"{answer.label}{open_}", format_time(answer.total_s), "", ""])
        rows += _step_rows(answer)
    columns = ["request and steps", ">time", "algorithm", "bottleneck"]
    return table(times_title(answer.chunks for answer in best.requests), columns, rows)


def _step_rows(answer: RequestAnswer) -> list[list[str]]:
    if answer.program is None:
        names = [answer.request.kind.value] * len(answer.steps)
    else:
        names = [str(i) for i in answer.program.instructions]
    levels = [name for name, _ in answer.hierarchy.aliases[1:]]
    return [
        [
            f"  {name}",
            format_time(step.seconds),
            f"{step.algorithm} {step.protocol}".strip(),
            "" if step.level is None else f"{levels[step.level]} {format_bytes(step.load_bytes)}",
        ]
        for name, step in zip(names, answer.steps, strict=True)
    ]


def _notes(best: Alternative) -> list[str]:
    """What the programs were checked on, and the shard that each rank of a group ends with."""
    with_programs = [answer for answer in best.requests if answer.program is not None]
    hows = dict.fromkeys(answer.checked for answer in with_programs)
    notes = [
        f"checked on {how}"
        + (f": {', '.join(str(p.request) for p in with_programs if p.checked == how)}")
        * (len(hows) > 1)
        for how in hows
    ]
    notes += [
        f"{answer.request}: {_shard_order(answer)}"
        for answer in with_programs
        if answer.request.kind is RequestKind.REDUCE_SCATTER
        and answer.shards != tuple(range(answer.hierarchy.size))
    ]
    return [*notes, ""] if notes else []


def _shard_order(answer: RequestAnswer) -> str:
    if answer.shards is None:
        return f"the order of the shards is not computed for groups of {answer.hierarchy.size}"
    return f"the members of a group, in device order, end with shards {_listed(answer.shards)}"


def _listed(shards: Sequence[int]) -> str:
    shown = ", ".join(map(str, shards[:_SHARDS_SHOWN]))
    return shown if len(shards) <= _SHARDS_SHOWN else f"{shown}, .. ({len(shards)} in all)"
