"""`p2smt cost`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o

if TYPE_CHECKING:
    from p2smt.cli.scene_options import PlacedRequests
    from p2smt.plans.file_model import AnyPlan


def cost(
    plan: o.PlanArgument = None,
    topology: o.TopologyOption = None,
    use: o.UseOption = None,
    axes: o.AxesOption = None,
    placement: o.PlacementOption = None,
    reduce: o.ReduceOption = None,
    reduce_scatter: o.ReduceScatterOption = None,
    all_gather: o.AllGatherOption = None,
    all_to_all: o.AllToAllOption = None,
    send: o.SendOption = None,
    kind: o.KindOption = None,
    program: o.ProgramsOption = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE..SIZE",
            help="A table over sizes: such as 1KiB..8GiB (each twice the one before; 1KiB..8GiB*4: "
            "four times) or 1MiB,1GiB.  The requests' own do not count then.",
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw --sizes too: a file named .png, .svg or .pdf."),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of several requests: sum (default) or max."),
    ] = None,
    algorithm: o.AlgorithmOption = None,
    library: o.LibraryOption = None,
    nominal: o.NominalOption = False,
    pipeline: o.PipelineOption = None,
    symbolic: Annotated[
        bool,
        typer.Option(
            "--symbolic",
            help="No numbers: exact rationals times latencies alpha, seconds per byte beta and the "
            "payload n.  Sizes do not count then.",
        ),
    ] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Write --symbolic as LaTeX.")] = False,
    json: o.JsonOption = False,
) -> int:
    """The predicted time of requests and programs on a placement, or of a plan file.

    Of one request several programs may be given, which are compared; of several requests one for
    each that has programs, in the order printed: all-reduce, reduce-scatter, all-gather, and of a
    kind as given.
    """
    from p2smt.cli.arrays.verify_redistribution import cost_redistribution
    from p2smt.cli.scene_options import RequestTexts, placed_requests
    from p2smt.errors import InputError
    from p2smt.resharding.plan_file import is_redistribution

    texts = RequestTexts(reduce, reduce_scatter, all_gather, all_to_all, send, kind)
    if plan is not None:
        others = (topology, use, axes, placement, kind, program, sizes, plot, objective, algorithm)
        more = (*others, pipeline, library, nominal or None, symbolic or None, latex or None)
        if texts.some or any(given is not None for given in more):
            _refuse_others(plan, topology)
            raise InputError("a plan file", "stands alone", "drop the other options")
        if is_redistribution(plan):
            return cost_redistribution(plan, json)
        return _plan(plan, json)
    asked = placed_requests(
        topology,
        axes,
        placement,
        texts,
        algorithm,
        pipeline,
        objective or "sum",
        library,
        nominal,
        use,
        timed=not (symbolic or latex),
    )
    if symbolic or latex:
        from p2smt.cli.symbolic_cost import show_symbolic

        numeric = {"--sizes": sizes, "--plot": plot, "--objective": objective}
        return show_symbolic(asked, program or [], {**numeric, "--pipeline": pipeline}, latex, json)
    if sizes is not None:
        return _sweep(asked, program or [], sizes, plot, json)
    if plot is not None:
        raise InputError("--plot", "draws times over sizes", "give --sizes 1KiB..8GiB too")
    return _once(asked, program or [], json)


def _once(asked: PlacedRequests, programs: list[str], as_json: bool) -> int:
    from p2smt.cli.output import note, print_json
    from p2smt.plans.given_program import answer_notes, candidates, cost_of

    problem = asked.of(None)
    found = [cost_of(problem, asked.placement, c) for c in candidates(problem, programs)]
    for text in answer_notes(problem, found):
        note(text)
    if as_json:
        from p2smt.report.costs.cost_tables import cost_data

        print_json(cost_data(problem, found))
    else:
        from p2smt.report.costs.cost_tables import cost_tables
        from p2smt.report.tables import show

        show(*cost_tables(problem, found))
    return 0


def _sweep(
    asked: PlacedRequests, programs: list[str], sizes: str, plot: str | None, as_json: bool
) -> int:
    from p2smt.cli import restrictions
    from p2smt.cli.output import note, print_json
    from p2smt.plans.given_program import answer_notes, sweep
    from p2smt.report.costs.cost_tables import sweep_data
    from p2smt.report.costs.sweep import plot_format, sweep_tables, write_plot
    from p2smt.report.tables import show
    from p2smt.report.text import printable
    from p2smt.units import parse_sizes

    if plot is not None:
        restrictions.writable(plot)
        plot_format(plot)
    payloads = parse_sizes(sizes, "--sizes")
    found = sweep(asked.of(payloads[0]), asked.placement, payloads, programs)
    for text in answer_notes(found.problem, [one for row in found.by_size for one in row]):
        note(text)
    if any(asked.sized):
        note("--sizes takes the place of the sizes that requests have")
    if plot is not None:
        write_plot(found, plot)
    if as_json:
        print_json(sweep_data(found))
        return 0
    show(*sweep_tables(found))
    if plot is not None:
        typer.echo(f"\nplot written to {printable(plot)}")
    return 0


def _plan(path: str, as_json: bool) -> int:
    """The verdict on a plan, and of a valid one its requests, as `solve` shows them."""
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.costs.cost_tables import plan_cost_data, plan_tables
    from p2smt.report.plan_data import report_lines
    from p2smt.report.tables import show
    from p2smt.training.plan import check_training_plan

    plan = _read(path)
    report = check_training_plan(plan, f"plan {path[:200]!r}")
    if as_json:
        print_json(plan_cost_data(plan if report.valid else None, report))
    else:
        typer.echo("\n".join(report_lines(report)))
        if report.valid:
            show("", *plan_tables(plan, report))
    return OK if report.valid else REFUTED


def _read(path: str) -> AnyPlan:
    """The plan in a file.

    Raises:
        InputError: there is none; of a schedule it says how to predict its time.
    """
    from p2smt.errors import InputError
    from p2smt.plans.file import read_plan

    try:
        return read_plan(path)
    except InputError:
        _refuse_others(path, None)
        raise


def _refuse_others(path: str, topology: str | None) -> None:
    """Files that have a time elsewhere, or none.

    Raises:
        InputError: it is a schedule, or the certificate of a bound.
    """
    from p2smt.api.files import is_certificate
    from p2smt.errors import InputError
    from p2smt.interop.schedule_files import format_of, schedule_text

    given, bound = f"file {path[:200]!r}", False
    found = format_of(schedule_text(path) or "")
    if found is not None:
        rule = f"is a schedule ({found.title}), not a plan"
        name = "NAME" if topology is None else topology[:60]
        remedy = f"use `p2smt verify FILE --cost SIZE --topology {name}`"
        raise InputError(given, rule, remedy)
    with suppress(InputError):  # what is no JSON is said by those who read it
        bound = is_certificate(path)
    if bound:
        rule = "is the certificate of a bound, which no time goes with"
        raise InputError(given, rule, "check it with `p2smt verify FILE`")
