"""`p2smt solve`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2smt.cli import options as o

if TYPE_CHECKING:
    from p2smt.plans.solution import Solution
    from p2smt.search.joint import ProgressCallback

_SIZED = "AXES=SIZE[*N]"


def solve(
    topology: o.TopologyOption = None,
    axes: o.AxesOption = None,
    reduce: Annotated[
        list[str] | None,
        typer.Option(metavar=_SIZED, help="All-reduce, such as dp=1GiB or tp=64MiB*128."),
    ] = None,
    reduce_scatter: Annotated[
        list[str] | None,
        typer.Option(metavar=_SIZED, help="Such as dp=1GiB (bytes: the input)."),
    ] = None,
    all_gather: Annotated[
        list[str] | None,
        typer.Option(metavar=_SIZED, help="Such as dp=1GiB (bytes: the output)."),
    ] = None,
    all_to_all: Annotated[
        list[str] | None,
        typer.Option(metavar=_SIZED, help="Such as ep=64MiB (bytes: all a rank sends)."),
    ] = None,
    send: Annotated[
        list[str] | None,
        typer.Option(metavar=_SIZED, help="Such as pp=16MiB, to the next rank."),
    ] = None,
    objective: Annotated[str, typer.Option(metavar="NAME", help="sum or max.")] = "sum",
    top: Annotated[str, typer.Option(metavar="N", help="How many placements to rank.")] = "3",
    within: Annotated[
        str | None,
        typer.Option(
            metavar="P%",
            help="List every placement at most so much slower than the best, such as 5%; "
            "default: count those within 5%, for a fifth of the time.",
        ),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="LAYOUT", help="Your layout: a matrix or a rank list.")
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Re-solve with bandwidths 20 %, calls 50 % off.")
    ] = False,
    require: o.RequireOption = None,
    forbid: o.ForbidOption = None,
    fix: o.FixOption = None,
    length: o.LengthOption = "5",
    forbid_form: o.FormOption = None,
    max_steps_at: o.StepsOption = None,
    algorithm: o.AlgorithmOption = None,
    library: o.LibraryOption = None,
    nominal: o.NominalOption = False,
    pipeline: o.PipelineOption = None,
    solver: o.SolverOption = "cpsat",
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    workers: o.WorkersOption = "1",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the plan here, as JSON."),
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """The best placement and programs, with a proof."""
    from p2smt.cli import given, restrictions
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH, Problem, parse_objective
    from p2smt.search.order.near import BRIEFLY
    from p2smt.search.solve import MAX_TOP
    from p2smt.search.solve import solve as search
    from p2smt.solvers.solver import solver_of

    cluster = given.topology_of(topology, library, nominal=nominal, algorithm=algorithm)
    chosen = given.axes_of(axes)
    requests = given.requests_of(
        reduce=reduce,
        reduce_scatter=reduce_scatter,
        all_gather=all_gather,
        all_to_all=all_to_all,
        send=send,
    )
    problem = Problem(
        cluster,
        chosen,
        requests,
        parse_objective(objective),
        given.count_of(length, "length", MAX_PROGRAM_LENGTH),
        given.rules_of(cluster.names, chosen, require, forbid, fix),
        restrictions.forms(forbid_form),
        restrictions.step_limits(max_steps_at, cluster.names),
        restrictions.algorithms(algorithm),
        given.pipeline_of(pipeline),
    )
    near = BRIEFLY if within is None else given.gap_of(within)
    order = None if compare is None else given.rank_order_of(compare)
    limits = given.limits_of(time_limit, seed, workers)
    restrictions.writable(output)
    if output is not None:
        from p2smt.plans.file import check_plan_name

        check_plan_name(output)
    with live() as progress:
        solution = search(
            problem,
            top=given.count_of(top, "top", MAX_TOP),
            limits=limits,
            solver=solver_of(solver),
            compare=order,
            sensitivity=sensitivity,
            within=near,
            progress=progress,
        )
    return _finish(solution, output, json)


def live() -> AbstractContextManager[ProgressCallback | None]:
    """A line on stderr with incumbent, bound and gap, where stderr is a terminal."""
    from p2smt.report.tables import console

    screen = console(stderr=True)
    if not screen.is_terminal:
        return nullcontext(None)
    from p2smt.report.live import live_line

    return live_line(screen)


def _finish(solution: Solution, output: str | None, as_json: bool) -> int:
    """Write the plan first: what is shown may go to a pipe that nobody reads any more."""
    from p2smt.cli.codes import INTERRUPTED, exit_code

    data: dict[str, Any] = {}
    if as_json or output is not None:
        from p2smt.report.solution_data import solution_data

        data = solution_data(solution)
    written = None
    try:
        if output is not None and data["plan"] is not None:
            _write(output, data["plan"])
            written = output
    finally:
        if as_json:
            _print(data)
        else:
            _show(solution, written)
    return INTERRUPTED if solution.interrupted else exit_code(solution.status)


def _print(data: dict[str, Any]) -> None:
    from p2smt.cli.output import print_json

    print_json(data)


def _show(solution: Solution, written: str | None) -> None:
    from p2smt.report.solution_tables import solution_tables
    from p2smt.report.tables import show
    from p2smt.report.text import printable

    show(solution_tables(solution))
    if written is not None:
        typer.echo(f"\nplan written to {printable(written)}")


def _write(output: str, plan: dict[str, Any]) -> None:
    import json as json_module

    from p2smt.files.write import write_atomically

    write_atomically(output, json_module.dumps(plan) + "\n")
