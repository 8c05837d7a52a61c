"""`p2smt programs` and `p2smt placements`: every answer, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, opened, option, part

if TYPE_CHECKING:
    from p2smt.parallelism.request import Problem
    from p2smt.report.program_lists import Catalog
    from p2smt.result import SearchLimits
    from p2smt.solvers.ask import Solver


@opened
def programs(
    *,
    cluster: o.ClusterOptions,
    factors: Text = option("N,N,..", "Reduction factors such as 2,4."),
    axes: Text = o.AXES,
    placement: Text = o.PLACEMENT,
    requests: o.RequestOptions,
    prices: o.PriceOptions = part("library", "nominal"),
    top: Text = option("N", "Only the best: by time, or without a size by length."),
    restricted: o.ProgramOptions,
    limit: Text = o.LIMIT,
    how: o.SearchOptions = part("solver", "time_limit", "seed"),
    details: bool = o.DETAILS,
    json: bool = o.JSON,
) -> int:
    """Every valid program of the factors or of each request, or the best ones."""
    from p2smt.cli import given
    from p2smt.errors import InputError

    if (cluster.topology is None) == (factors is None):
        raise InputError("programs", "take either --factors, or --topology with a placement")
    if limit is not None and top is not None:
        raise InputError("--limit beside --top", "both bound the list", "drop one of them")
    sought = _Sought(
        restricted.most(),
        restricted,
        None if top is None else given.count_of(top, "top", 1000),
        how.limits(limit),
        how.by(),
    )
    if factors is None:
        timed = any("=" in text for _, text in requests.texts())
        asked = o.placed_requests(cluster, axes, placement, requests, prices, timed=timed)
        return _of_requests(asked, sought, details, json)
    if requests.some or cluster.use or axes is not None or placement is not None or prices.given():
        others = "--axes, --placement, --use, --library, --nominal and the requests"
        raise InputError("--factors", "stand alone", f"drop {others}")
    return _of_factors(factors, requests.kind, sought, details, json)


@dataclass(frozen=True, slots=True)
class _Sought:
    """Which programs are looked for, and how."""

    length: int
    restricted: o.ProgramOptions
    top: int | None
    limits: SearchLimits
    solver: Solver


def _of_factors(
    factors: str, kind: str | None, sought: _Sought, details: bool, as_json: bool
) -> int:
    from p2smt.cli import given
    from p2smt.programs.program import Hierarchy
    from p2smt.report.program_lists import Catalog
    from p2smt.search.program_synthesis import Task, programs_on

    hierarchy = Hierarchy.plain(given.sizes_of(factors, "factors"))
    task = Task(
        given.program_kind(kind, exchanges=True),
        hierarchy,
        sought.length,
        sought.restricted.forbidden(),
        sought.restricted.step_limits([name for name, _ in hierarchy.aliases[1:]]),
        sought.solver,
    )
    listed = Catalog(programs_on(task, sought.limits, sought.top))
    return _finish([listed], sought, details, as_json)


def _of_requests(asked: o.PlacedRequests, sought: _Sought, details: bool, as_json: bool) -> int:
    from p2smt.report.program_lists import Catalog
    from p2smt.search.gain import single_of
    from p2smt.search.program_synthesis import programs_of_each

    problem = replace(
        asked.problem,
        max_length=sought.length,
        forbidden_forms=sought.restricted.forbidden(),
        step_limits=sought.restricted.step_limits(asked.problem.topology.names),
    )
    found = programs_of_each(
        problem,
        asked.placement,
        timed=asked.sized,
        top=sought.top,
        limits=sought.limits,
        solver=sought.solver,
    )
    listings = [
        Catalog(one, request, single_of(problem, asked.placement, request) if one.by_time else None)
        for one, request in zip(found, problem.requests, strict=True)
    ]
    _note_steps(problem, listings)
    return _finish(listings, sought, details, as_json)


def _note_steps(problem: Problem, listings: Sequence[Catalog]) -> None:
    """Say of the steps that were priced which do not run by the algorithm named for them."""
    from p2smt.cli.output import note
    from p2smt.cost.requested_algorithms import named_notes
    from p2smt.plans.solution import steps_named

    steps = [
        step
        for listing in listings
        if listing.request is not None and listing.found.by_time
        for one in listing.found.programs
        for step in steps_named(listing.request, one.program, one.steps)
    ]
    for text in named_notes(problem.topology, problem.algorithms, steps):
        note(text)


def _finish(listings: Sequence[Catalog], sought: _Sought, details: bool, as_json: bool) -> int:
    """Show the lists; the exit code says whether any was cut short."""
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import tell
    from p2smt.report.program_lists import lists_data, lists_lines

    best = sought.top is not None
    tell(
        as_json,
        lambda: lists_data(listings, best),
        lambda: lists_lines(listings, best, details=details),
    )
    return max(exit_code(one.found.status) for one in listings)


# `p2smt placements`.


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
