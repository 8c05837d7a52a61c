"""`p2smt placements`."""

from __future__ import annotations

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, opened, part


@opened
def placements(
    *,
    topology: Text = o.TOPOLOGY,
    levels: Text = o.LEVELS,
    use: Texts = o.USE,
    axes: Text = o.AXES,
    rules: o.RuleOptions,
    limit: Text = o.LIMIT,
    how: o.SearchOptions = part("solver", "time_limit", "seed"),
    parts: o.PartOptions,
    details: bool = o.DETAILS,
    json: bool = o.JSON,
) -> int:
    """Every parallelism matrix of a cluster and its axes, each once."""
    from p2smt.cli import given
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import tell
    from p2smt.errors import InputError
    from p2smt.problems.placement import PlacementProblem
    from p2smt.report.placement_list import placements_data, placements_lines
    from p2smt.search.conflict import list_placements

    names, sizes = given.levels_of(topology, levels, use)
    chosen = given.axes_of(axes)
    sought = rules.rules(names, chosen)
    problem = PlacementProblem(sizes, tuple(axis.size for axis in chosen), sought)
    limits = how.limits(limit)
    spread = parts.over()
    if spread is None:
        found = list_placements(problem, limits, how.by())
    elif limit is not None:
        rule = "does not go with a search in parts, which lists all"
        raise InputError(f"--limit {limit}", rule, "drop one of them")
    else:
        from p2smt.search.spaces.placement_space import list_by_subproblems

        axis_names = [axis.name for axis in chosen]
        found = list_by_subproblems(problem, axis_names, limits, spread, how.by())
    tell(
        json,
        lambda: placements_data(found, chosen, names),
        lambda: placements_lines(found, chosen, names, details=details),
    )
    return exit_code(found.status)
