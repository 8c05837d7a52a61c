"""`p2smt placements`."""

from __future__ import annotations

import typer

from p2smt.cli import options as o


def placements(
    topology: o.TopologyOption = None,
    levels: o.LevelsOption = None,
    use: o.UseOption = None,
    axes: o.AxesOption = None,
    require: o.RequireOption = None,
    forbid: o.ForbidOption = None,
    fix: o.FixOption = None,
    limit: o.LimitOption = None,
    solver: o.SolverOption = "cpsat",
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    processes: o.ProcessesOption = None,
    engine: o.EngineOption = None,
    scheduler: o.SchedulerOption = None,
    journal: o.JournalOption = None,
    budget: o.BudgetOption = None,
    json: o.JsonOption = False,
) -> int:
    """Every parallelism matrix of a cluster and its axes, each once."""
    from p2smt.cli import given
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import print_json
    from p2smt.cli.spread_options import SpreadTexts, spread_over
    from p2smt.errors import InputError
    from p2smt.problems.placement import PlacementProblem
    from p2smt.report.placement_list import placements_data, placements_lines
    from p2smt.search.conflict import list_placements
    from p2smt.solvers.questions import solver_of

    names, sizes = given.levels_of(topology, levels, use)
    chosen = given.axes_of(axes)
    rules = given.rules_of(names, chosen, require, forbid, fix)
    problem = PlacementProblem(sizes, tuple(axis.size for axis in chosen), rules)
    limits = given.limits_of(time_limit, seed, limit=limit)
    with spread_over(SpreadTexts(processes, engine, scheduler, journal, budget)) as spread:
        if spread is None:
            found = list_placements(problem, limits, solver_of(solver))
        elif limit is not None:
            rule = "does not go with a search in parts, which lists all"
            raise InputError(f"--limit {limit}", rule, "drop one of them")
        else:
            from p2smt.search.spaces.placements import list_by_cubes

            axis_names = [axis.name for axis in chosen]
            found = list_by_cubes(problem, axis_names, limits, spread, solver_of(solver))
    if json:
        print_json(placements_data(found, chosen, names))
    else:
        for line in placements_lines(found, chosen, names):
            typer.echo(line)
    return exit_code(found.status)
