"""`p2smt programs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2smt.cli import options as o

if TYPE_CHECKING:
    from p2smt.synthesis import Task


def programs(
    topology: o.TopologyOption = None,
    factors: Annotated[str | None, typer.Option(help="Reduction factors such as 2,4.")] = None,
    axes: o.AxesOption = None,
    placement: o.PlacementOption = None,
    reduce: Annotated[str | None, typer.Option(help="Axes, such as dp or dp=1GiB.")] = None,
    kind: Annotated[
        str, typer.Option(help="all-reduce, reduce-scatter or all-gather.")
    ] = "all-reduce",
    top: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Only the so many best, by time or length.")
    ] = None,
    length: o.LengthOption = 5,
    forbid_form: o.FormOption = None,
    max_steps_at: o.StepsOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    solver: o.SolverOption = "cpsat",
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = 0,
    json: o.JsonOption = False,
) -> int:
    """Every valid reduction program up to a length, or the best ones."""
    from dataclasses import replace

    from p2smt.cli import restrictions, scene_options
    from p2smt.result import SearchLimits
    from p2smt.synthesis import Task

    where = scene_options.where(topology, factors, axes, placement, reduce)
    levels = [name for name, _ in where.hierarchy.aliases[1:]]
    task = Task(
        scene_options.program_kind(kind),
        where.hierarchy,
        length,
        restrictions.forms(forbid_form),
        restrictions.step_limits(max_steps_at, levels),
        solver,
    )
    limits: SearchLimits = o.limits_of(time_limit, seed, 1)
    if top is not None:
        return _best(task, where, limits, top, json)
    return _all(task, replace(limits, max_answers=limit), json)


def _all(task: Task, limits: Any, as_json: bool) -> int:
    from p2smt.synthesis import list_programs

    result, checked = list_programs(task, limits)
    found = result.value or ()
    by_length = [sum(len(p) == n for p in found) for n in range(1, task.max_length + 1)]
    if as_json:
        data = [_program(str(program), len(program)) for program in found]
        o.print_json(
            {
                "status": result.status.value,
                "count": len(found),
                "count_by_length": by_length,
                "checked": checked,
                "programs": data,
            }
        )
        return o.exit_code(result.status)
    for program in found:
        typer.echo(str(program))
    counts = ", ".join(f"{count} of length {n}" for n, count in enumerate(by_length, 1) if count)
    typer.echo(f"{result.status.value}: {len(found)} programs ({counts}), checked on {checked}")
    return o.exit_code(result.status)


def _program(text: str, _: int) -> dict[str, Any]:
    return {"text": text, "instructions": text.split("; ")}


def _best(task: Task, where: Any, limits: Any, top: int, as_json: bool) -> int:
    from p2smt.synthesis import best_few
    from p2smt.units import format_time

    status, found, _ = best_few(task, where.scene, where.payload_bytes, limits, top)
    if as_json:
        data = [
            {
                **_program(str(best.program), 0),
                "seconds": best.seconds if where.scene else None,
                "checked": best.checked.how,
            }
            for best in found
        ]
        o.print_json({"status": status.value, "count": len(found), "programs": data})
        return o.exit_code(status)
    for best in found:
        time = f"{format_time(best.seconds):>12}  " if where.scene else ""
        typer.echo(f"{time}{best.program}")
    typer.echo(f"{status.value}: the {len(found)} best")
    return o.exit_code(status)
