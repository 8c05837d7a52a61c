"""`p2smt programs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o

if TYPE_CHECKING:
    from p2smt.cli.scene_options import PlacedRequests
    from p2smt.parallelism.request import Problem
    from p2smt.report.program_lists import Listing
    from p2smt.result import SearchLimits
    from p2smt.solvers.questions import Solver


def programs(
    topology: o.TopologyOption = None,
    use: o.UseOption = None,
    factors: Annotated[
        str | None, typer.Option(metavar="N,N,..", help="Reduction factors such as 2,4.")
    ] = None,
    axes: o.AxesOption = None,
    placement: o.PlacementOption = None,
    reduce: o.ReduceOption = None,
    reduce_scatter: o.ReduceScatterOption = None,
    all_gather: o.AllGatherOption = None,
    all_to_all: o.AllToAllOption = None,
    send: o.SendOption = None,
    kind: o.KindOption = None,
    library: o.LibraryOption = None,
    nominal: o.NominalOption = False,
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
    """Every valid program of the factors or of each request, or the best ones."""
    from p2smt.cli import given
    from p2smt.cli.scene_options import RequestTexts, placed_requests
    from p2smt.errors import InputError
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
    from p2smt.solvers.questions import solver_of

    texts = RequestTexts(reduce, reduce_scatter, all_gather, all_to_all, send, kind)
    if (topology is None) == (factors is None):
        raise InputError("programs", "take either --factors, or --topology with a placement")
    if limit is not None and top is not None:
        raise InputError("--limit beside --top", "both bound the list", "drop one of them")
    sought = _Sought(
        given.count_of(length, "length", MAX_PROGRAM_LENGTH),
        tuple(forbid_form or ()),
        tuple(max_steps_at or ()),
        None if top is None else given.count_of(top, "top", 1000),
        given.limits_of(time_limit, seed, limit=limit),
        solver_of(solver),
    )
    if factors is None:
        scene, timed = (topology, axes, placement, texts), any("=" in t for _, t in texts.texts())
        asked = placed_requests(*scene, library=library, nominal=nominal, use=use, timed=timed)
        return _of_requests(asked, sought, json)
    of_links = (axes, placement, use or None, library, nominal or None)
    if texts.some or any(given is not None for given in of_links):
        others = "--axes, --placement, --use, --library, --nominal and the requests"
        rule, remedy = "stand alone", f"drop {others}"
        raise InputError("--factors", rule, remedy)
    return _of_factors(factors, kind, sought, json)


@dataclass(frozen=True, slots=True)
class _Sought:
    """Which programs are looked for, and how."""

    length: int
    forms: tuple[str, ...]
    steps: tuple[str, ...]
    top: int | None
    limits: SearchLimits
    solver: Solver


def _of_factors(factors: str, kind: str | None, sought: _Sought, as_json: bool) -> int:
    from p2smt.cli import given, restrictions, scene_options
    from p2smt.programs.program import Hierarchy
    from p2smt.report.program_lists import Listing
    from p2smt.search.programs import Task, programs_on

    hierarchy = Hierarchy.plain(given.sizes_of(factors, "factors"))
    task = Task(
        scene_options.program_kind(kind),
        hierarchy,
        sought.length,
        restrictions.forms(sought.forms),
        restrictions.step_limits(sought.steps, [name for name, _ in hierarchy.aliases[1:]]),
        sought.solver,
    )
    listed = Listing(programs_on(task, sought.limits, sought.top))
    return _finish([listed], sought, as_json)


def _of_requests(asked: PlacedRequests, sought: _Sought, as_json: bool) -> int:
    from p2smt.cli import restrictions
    from p2smt.report.program_lists import Listing
    from p2smt.search.gain import single_of
    from p2smt.search.programs import programs_of_each

    problem = replace(
        asked.problem,
        max_length=sought.length,
        forbidden_forms=restrictions.forms(sought.forms),
        step_limits=restrictions.step_limits(sought.steps, asked.problem.topology.names),
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
        Listing(one, request, single_of(problem, asked.placement, request) if one.by_time else None)
        for one, request in zip(found, problem.requests, strict=True)
    ]
    _note_steps(problem, listings)
    return _finish(listings, sought, as_json)


def _note_steps(problem: Problem, listings: Sequence[Listing]) -> None:
    """Say of the steps that were priced which do not run by the algorithm named for them."""
    from p2smt.cli.output import note
    from p2smt.cost.requested_algorithms import named_notes
    from p2smt.plans.answers import steps_named

    steps = [
        step
        for listing in listings
        if listing.request is not None and listing.found.by_time
        for one in listing.found.programs
        for step in steps_named(listing.request, one.program, one.steps)
    ]
    for text in named_notes(problem.topology, problem.algorithms, steps):
        note(text)


def _finish(listings: Sequence[Listing], sought: _Sought, as_json: bool) -> int:
    """Show the lists; the exit code says whether any was cut short."""
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import print_json
    from p2smt.report.program_lists import lists_data, lists_lines

    best = sought.top is not None
    if as_json:
        print_json(lists_data(listings, best))
    else:
        for line in lists_lines(listings, best):
            typer.echo(line)
    return max(exit_code(one.found.status) for one in listings)
