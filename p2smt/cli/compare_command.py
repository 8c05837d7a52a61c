"""`p2smt compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o


def compare(
    orders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ORDER",
            help="listed, alphabetical, sorted, exchanged or default, or as printed; a file of "
            "ranks or hosts; a mesh (.npy, .json); [0,2,1,3]; an order of axes such as "
            "tp-cp-ep-dp-pp (the first varies fastest); NAME=ORDER names it.  Default: the "
            "standard ones.",
        ),
    ] = None,
    topology: o.TopologyOption = None,
    use: o.UseOption = None,
    hosts: o.HostsOption = None,
    axes: o.AxesOption = None,
    reduce: o.ReduceOption = None,
    reduce_scatter: o.ReduceScatterOption = None,
    all_gather: o.AllGatherOption = None,
    all_to_all: o.AllToAllOption = None,
    send: o.SendOption = None,
    objective: Annotated[str, typer.Option(metavar="NAME", help="sum or max.")] = "sum",
    require: o.RequireOption = None,
    forbid: o.ForbidOption = None,
    fix: o.FixOption = None,
    algorithm: o.AlgorithmOption = None,
    library: o.LibraryOption = None,
    nominal: o.NominalOption = False,
    solver: o.SolverOption = "cpsat",
    time_limit: o.TimeOption = "60",
    seed: o.SeedOption = "0",
    workers: o.WorkersOption = "1",
    json: o.JsonOption = False,
) -> int:
    """Rank orders side by side: what each costs, and what the best one would gain.

    A list, a mesh and an order of axes number ranks as a launcher starts them: host by host in the
    order of --hosts, on each by device.
    """
    from p2smt.api.compare import compare as beside
    from p2smt.cli import given, restrictions
    from p2smt.cli.codes import INTERRUPTED, exit_code
    from p2smt.cli.output import print_json
    from p2smt.cli.solve.hosts import hosts_of
    from p2smt.cli.solve.show import live
    from p2smt.parallelism.request import Problem, parse_objective
    from p2smt.report.orders import comparison_data, comparison_tables
    from p2smt.report.tables import show
    from p2smt.solvers.questions import solver_of

    cluster = given.topology_of(topology, library, nominal=nominal, algorithm=algorithm, use=use)
    chosen = given.axes_of(axes)
    problem = Problem(
        cluster,
        chosen,
        given.requests_of(
            reduce=reduce,
            reduce_scatter=reduce_scatter,
            all_gather=all_gather,
            all_to_all=all_to_all,
            send=send,
        ),
        parse_objective(objective),
        rules=given.rules_of(cluster.names, chosen, require, forbid, fix),
        algorithms=restrictions.algorithms(algorithm),
    )
    limits = given.limits_of(time_limit, seed, workers)
    listed = hosts_of(hosts, cluster)
    with live() as progress:
        found = beside(
            problem, orders, listed, limits=limits, solver=solver_of(solver), progress=progress
        )
    if json:
        print_json(comparison_data(found))
    else:
        show(comparison_tables(found))
    return INTERRUPTED if found.best.interrupted else exit_code(found.status)
