"""`p2smt placements`."""

from __future__ import annotations

import typer

from p2smt.cli import options as o


def placements(
    topology: o.TopologyOption = None,
    levels: o.LevelsOption = None,
    axes: o.AxesOption = None,
    require: o.RequireOption = None,
    forbid: o.ForbidOption = None,
    fix: o.FixOption = None,
    limit: o.LimitOption = None,
    solver: o.SolverOption = "cpsat",
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    json: o.JsonOption = False,
) -> int:
    """Every parallelism matrix of a cluster and its axes, each once."""
    from p2smt.cli import given
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import print_json
    from p2smt.parallelism.placement import Placement
    from p2smt.problems.placement import PlacementProblem
    from p2smt.result import Status
    from p2smt.search.placements import placements as search
    from p2smt.solvers.solver import solver_of

    names, sizes = given.levels_of(topology, levels)
    chosen = given.axes_of(axes)
    rules = given.rules_of(names, chosen, require, forbid, fix)
    problem = PlacementProblem(sizes, tuple(axis.size for axis in chosen), rules)
    limits = given.limits_of(time_limit, seed, limit=limit)
    result = search(problem, limits, solver_of(solver))
    matrices = result.value or ()
    texts: list[str] = []
    if result.status is Status.COMPLETE and not matrices:
        from p2smt.search.conflict import rule_conflict, rule_text

        excluding = rule_conflict(sizes, problem.axes, rules, limits, solver_of(solver))
        axis_names = [axis.name for axis in chosen]
        texts = [rule_text(rule, axis_names, names) for rule in excluding]
    if json:
        print_json(
            {
                "status": result.status.value,
                "count": len(matrices),
                "levels": [{"name": n, "size": s} for n, s in zip(names, sizes, strict=True)],
                "axes": [{"name": axis.name, "size": axis.size} for axis in chosen],
                "placements": matrices,
                "conflict": texts,
            }
        )
        return exit_code(result.status)
    for matrix in matrices:
        typer.echo(Placement(matrix).text())
    typer.echo(
        f"{result.status.value}: {len(matrices)} placement{'s' * (len(matrices) != 1)} of "
        f"{', '.join(f'{axis.name}={axis.size}' for axis in chosen)} on "
        f"{', '.join(f'{n}={s}' for n, s in zip(names, sizes, strict=True))}"
    )
    if texts:
        from p2smt.plans.restrictions import conflict_text

        typer.echo(conflict_text(texts, "rule"))
    return exit_code(result.status)
