"""`p2smt solve`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o

_SIZED = "AXES=SIZE[*N]"


def solve(
    topology: o.TopologyOption = None,
    use: o.UseOption = None,
    hosts: o.HostsOption = None,
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
    top: Annotated[
        str | None, typer.Option(metavar="N", help="How many placements to rank; default: 3.")
    ] = None,
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
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="How far each number may be off before another answer wins, and what holds for "
            "every hardware.",
        ),
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
    processes: o.ProcessesOption = None,
    engine: o.EngineOption = None,
    scheduler: o.SchedulerOption = None,
    journal: o.JournalOption = None,
    budget: o.BudgetOption = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the plan here, as JSON."),
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """The best placement and programs, with a proof.

    On a topology that names hosts: the best order of the hosts that the job got, and which to leave
    idle.
    """
    from p2smt.cli import given, restrictions
    from p2smt.cli.solve import on_hosts
    from p2smt.cli.solve.hosts import hosts_of
    from p2smt.cli.solve.show import finish, live
    from p2smt.cli.spread_options import SpreadTexts, spread_over
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH, Problem, parse_objective
    from p2smt.search.near_optimal import BRIEFLY
    from p2smt.search.solve import MAX_TOP
    from p2smt.search.solve import solve as search
    from p2smt.solvers.questions import solver_of

    cluster = given.topology_of(topology, library, nominal=nominal, algorithm=algorithm, use=use)
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
    parts = SpreadTexts(processes, engine, scheduler, journal, budget)
    parts.check_apart(output)
    listed = hosts_of(hosts, cluster)
    limits = given.limits_of(time_limit, seed, workers)
    restrictions.writable(output)
    if output is not None:
        from p2smt.plans.file import check_plan_name

        check_plan_name(output)
    if listed is not None:
        others = {"--top": top, "--within": within, "--compare": compare, "--pipeline": pipeline}
        alone = {"--sensitivity": sensitivity or None, "--explain": explain or None}
        on_hosts.refuse({**others, **alone, **parts.given()})
        return on_hosts.answer(problem, listed, limits, solver_of(solver), output, as_json=json)
    near = BRIEFLY if within is None else given.gap_of(within)
    order = None if compare is None else given.rank_order_of(compare)
    with spread_over(parts) as spread, live(parts.wanted) as progress:
        solution = search(
            problem,
            top=given.count_of("3" if top is None else top, "top", MAX_TOP),
            limits=limits,
            solver=solver_of(solver),
            compare=order,
            sensitivity=sensitivity,
            explain=explain,
            within=near,
            progress=progress,
            spread=spread,
        )
    return finish(solution, output, as_json=json)
