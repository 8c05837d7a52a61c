"""What `solve` tells a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from p2smt.report.tables import gap, table
from p2smt.result import Status
from p2smt.solution import Alternative, Perturbation, RequestPlan, Solution
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
        parts += _alternatives(solution)
    parts.append(_comparison_table(solution, best))
    if solution.sensitivity:
        parts += ["", _sensitivity_table(solution.sensitivity), _stability(solution.sensitivity)]
    return Group(*parts)


def _nothing(solution: Solution) -> str:
    if solution.interrupted:
        text = "interrupted: no plan had been found"
    elif solution.status is Status.INFEASIBLE:
        return "infeasible: no placement obeys the rules and has a program for every request"
    else:
        text = f"{solution.status.value}: no plan was found within the time limit; give it more"
    bound = solution.bound_s
    return text + (f"\nproved bound {format_time(bound)}" if bound > 0 else "")


def _headline(solution: Solution, best: Alternative) -> str:
    bound, physical = solution.bound_s, solution.physical_bound_s
    what = "total" if solution.problem.objective == "sum" else "largest request"
    lines = [
        f"{solution.status.value}: {format_time(best.objective_s)} per iteration ({what})",
        f"proved bound {format_time(bound)} (gap {gap(best.objective_s, bound)}), "
        f"link-level bound {format_time(physical)} (gap {gap(best.objective_s, physical)})",
        f"peak memory per device {format_bytes(best.peak_bytes)}",
    ]
    if solution.interrupted:
        lines.insert(0, "interrupted: the best found so far")
    return "\n".join(lines)


def _matrix_table(solution: Solution, best: Alternative) -> Group:
    names = solution.problem.topology.names
    rows = [
        [axis.name, str(axis.size), *map(str, row)]
        for axis, row in zip(solution.problem.axes, best.matrix, strict=True)
    ]
    return table("placement", ["axis", ">size", *(f">{name}" for name in names)], rows)


def _request_table(best: Alternative) -> Group:
    rows = []
    for plan in best.requests:
        open_ = "" if plan.status is Status.OPTIMAL else f" ({plan.status.value})"
        rows.append([f"{plan.request}{open_}", format_time(plan.total_s), "", ""])
        rows += _step_rows(plan)
    columns = ["request and steps", ">time", "algorithm", "bottleneck"]
    return table("requests: time per iteration; steps: time of one execution", columns, rows)


def _step_rows(plan: RequestPlan) -> list[list[str]]:
    if plan.program is None:
        names = [plan.request.kind.value] * len(plan.steps)
    else:
        names = [str(i) for i in plan.program.instructions]
    levels = [name for name, _ in plan.hierarchy.aliases[1:]]
    return [
        [
            f"  {name}",
            format_time(step.seconds),
            f"{step.algorithm} {step.protocol}".strip(),
            "" if step.level is None else f"{levels[step.level]} {format_bytes(step.load_bytes)}",
        ]
        for name, step in zip(names, plan.steps, strict=True)
    ]


def _notes(best: Alternative) -> list[str]:
    """What the programs were checked on, and the shard that each rank of a group ends with."""
    with_programs = [plan for plan in best.requests if plan.program is not None]
    hows = dict.fromkeys(plan.checked for plan in with_programs)
    notes = [
        f"checked on {how}"
        + (f": {', '.join(str(p.request) for p in with_programs if p.checked == how)}")
        * (len(hows) > 1)
        for how in hows
    ]
    notes += [
        f"{plan.request}: the members of a group, in device order, end with shards "
        f"{_listed(plan.shards)}"
        for plan in best.requests
        if plan.shards is not None and plan.shards != tuple(range(len(plan.shards)))
    ]
    return [*notes, ""] if notes else []


def _listed(shards: Sequence[int]) -> str:
    shown = ", ".join(map(str, shards[:_SHARDS_SHOWN]))
    return shown if len(shards) <= _SHARDS_SHOWN else f"{shown}, .. ({len(shards)} in all)"


def _alternatives(solution: Solution) -> list[RenderableType]:
    """The ranking, its programs by letter, and the programs themselves, each once."""
    programs = [r.program for a in solution.alternatives for r in a.requests if r.program]
    letters = {str(p): _letters(n) for n, p in enumerate(dict.fromkeys(programs))}
    rows = [
        [
            str(n),
            format_time(a.objective_s),
            f"{a.objective_s / max(solution.alternatives[0].objective_s, 1e-300):.3g}x",
            a.placement.text(),
            format_bytes(a.peak_bytes),
            " ".join("-" if r.program is None else letters[str(r.program)] for r in a.requests),
        ]
        for n, a in enumerate(solution.alternatives, start=1)
    ]
    columns = [">rank", ">time", ">ratio", "placement", ">peak", "programs"]
    proved = solution.ranking is Status.COMPLETE
    title = "best placements" + ("" if proved else " found; the search stopped before it was done")
    parts: list[RenderableType] = [table(title, columns, rows), ""]
    if letters:
        legend = [[letter, text] for text, letter in letters.items()]
        parts += [table("their programs, in the order of the requests", ["", ""], legend), ""]
    return parts


def _letters(n: int) -> str:
    """A, B, .., Z, AA, AB, .."""
    return (_letters(n // 26 - 1) if n >= 26 else "") + chr(ord("A") + n % 26)


def _comparison_table(solution: Solution, best: Alternative) -> Group:
    rows = []
    for layout in (solution.default, solution.compared):
        if layout is not None:
            ratio = layout.objective_s / best.objective_s if best.objective_s else 1.0
            name = f"{layout.name} layout, one collective each"
            rows.append([name, format_time(layout.objective_s), f"{ratio:.4g}x"])
    return table("compared with this answer", ["layout", ">time", ">ratio"], rows)


def _sensitivity_table(cases: Sequence[Perturbation]) -> Group:
    rows = [
        [
            f"{case.level} x {case.factor:g}",
            format_time(case.winner_s),
            format_time(case.optimum_s),
            _verdict(case),
        ]
        for case in cases
    ]
    columns = ["bandwidth", ">this answer", ">best there", "still the best"]
    return table("if the bandwidth of a level is off", columns, rows)


def _verdict(case: Perturbation) -> str:
    if not case.holds:
        least = "" if case.status is Status.OPTIMAL else "at least "
        return f"no, {least}{_slower(case):.3g} % slower"
    return "yes" if case.status is Status.OPTIMAL else f"not settled ({case.status.value})"


def _slower(case: Perturbation) -> float:
    return 100 * (case.winner_s / case.optimum_s - 1)


def _stability(cases: Sequence[Perturbation]) -> str:
    """One line on the whole table."""
    worst = max(cases, key=_slower)
    held = sum(case.holds and case.status is Status.OPTIMAL for case in cases)
    text = f"proved to stay the best in {held} of {len(cases)} cases"
    return text if worst.holds else f"{text}; at worst {_slower(worst):.3g} % slower than possible"
