"""`p2smt programs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2smt.cli import options as o

if TYPE_CHECKING:
    from p2smt.cli.scene_options import Where
    from p2smt.programs.program import Program
    from p2smt.result import SearchLimits
    from p2smt.search.programs import Task


def programs(
    topology: o.TopologyOption = None,
    factors: Annotated[
        str | None, typer.Option(metavar="N,N,..", help="Reduction factors such as 2,4.")
    ] = None,
    axes: o.AxesOption = None,
    placement: o.PlacementOption = None,
    reduce: o.RequestOption = None,
    kind: o.KindOption = None,
    top: Annotated[
        str | None,
        typer.Option(metavar="N", help="Only the best: by time, or without a size by length."),
    ] = None,
    length: o.LengthOption = "5",
    forbid_form: o.FormOption = None,
    max_steps_at: o.StepsOption = None,
    limit: o.LimitOption = None,
    solver: o.SolverOption = "cpsat",
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    json: o.JsonOption = False,
) -> int:
    """Every valid reduction program, or the best ones."""
    from p2smt.cli import given, restrictions, scene_options
    from p2smt.errors import InputError
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
    from p2smt.search.programs import Task
    from p2smt.solvers.solver import solver_of

    where = scene_options.where(topology, factors, axes, placement, reduce)
    levels = [name for name, _ in where.hierarchy.aliases[1:]]
    task = Task(
        scene_options.program_kind(kind),
        where.hierarchy,
        given.count_of(length, "length", MAX_PROGRAM_LENGTH),
        restrictions.forms(forbid_form),
        restrictions.step_limits(max_steps_at, levels),
        solver_of(solver),
    )
    if where.hierarchy.depth == 0:
        raise InputError("a reduction group of one device", "needs no program")
    limits = given.limits_of(time_limit, seed, limit=limit)
    if top is None:
        return _all(task, limits, json)
    if limit is not None:
        raise InputError("--limit beside --top", "both bound the list", "drop one of them")
    return _best(task, where, limits, given.count_of(top, "top", 1000), json)


def _all(task: Task, limits: SearchLimits, as_json: bool) -> int:
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import print_json
    from p2smt.result import Status
    from p2smt.search.programs import list_programs

    result, checked = list_programs(task, limits)
    found = result.value or ()
    if as_json:
        data = {"checked": checked, "programs": [_program(program) for program in found]}
        print_json({"status": result.status.value, **_counts(found, task.max_length), **data})
        return exit_code(result.status)
    for program in found:
        typer.echo(str(program))
    counted = _counted(found, task.max_length)
    if result.status is not Status.COMPLETE:
        counted = f"stopped early with {counted if found else 'no program found yet'}"
    typer.echo(f"{result.status.value}: {counted}, checked on {checked}")
    return exit_code(result.status)


def _best(task: Task, where: Where, limits: SearchLimits, top: int, as_json: bool) -> int:
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import print_json
    from p2smt.search.programs import best_few
    from p2smt.units import format_time

    status, found, _ = best_few(task, where.scene, where.payload_bytes, limits, top)
    timed, listed = where.scene is not None, [best.program for best in found]
    if as_json:
        data = [
            {
                **_program(best.program),
                "seconds": best.seconds if timed else None,
                "checked": best.checked.how,
            }
            for best in found
        ]
        counts = _counts(listed, task.max_length)
        print_json({"status": status.value, **counts, "programs": data})
        return exit_code(status)
    for best in found:
        typer.echo(
            f"{format_time(best.seconds):>12}  {best.program}" if timed else str(best.program)
        )
    order = "least time first" if timed else "shortest first"
    which = "the best " if listed else ""
    typer.echo(f"{status.value}: {which}{_counted(listed, task.max_length)}, {order}")
    return exit_code(status)


def _program(program: Program) -> dict[str, Any]:
    return {"text": str(program), "instructions": [str(i) for i in program.instructions]}


def _by_length(found: Sequence[Program], most: int) -> list[int]:
    return [sum(len(program) == n for program in found) for n in range(1, most + 1)]


def _counts(found: Sequence[Program], most: int) -> dict[str, Any]:
    return {"count": len(found), "count_by_length": _by_length(found, most)}


def _counted(found: Sequence[Program], most: int) -> str:
    if not found:
        return f"no program of up to {most} instructions"
    counts = [f"{n} of length {i}" for i, n in enumerate(_by_length(found, most), 1) if n]
    return f"{len(found)} program{'s' * (len(found) != 1)} ({', '.join(counts)})"
