"""`p2smt cost`: of a plan or placement, and of schedules beside the library's own choice."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, argument, flag, opened, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from p2smt.parallelism.request import Problem
    from p2smt.plans.file_model import AnyPlan
    from p2smt.plans.solution import Alternative
    from p2smt.schedules.model import Schedule


@opened
def cost(
    *,
    plan: Texts = argument(
        "FILE",
        "A plan file written by solve -o; or schedules, with --topology and --sizes, beside what "
        "the library runs.",
    ),
    cluster: o.ClusterOptions,
    axes: Text = o.AXES,
    placement: Text = o.PLACEMENT,
    hosts: Text = o.HOSTS,
    requests: o.RequestOptions,
    program: Texts = o.PROGRAM,
    sizes: Text = option(
        "SIZE..SIZE",
        "A table over sizes: such as 1KiB..8GiB (each twice the one before; 1KiB..8GiB*4: four "
        "times) or 1MiB,1GiB.  The requests' own do not count then.",
    ),
    plot: Text = option("FILE", "Draw --sizes too: a file named .png, .svg or .pdf."),
    objective: Text = option("NAME", "Of several requests: sum (default) or max."),
    prices: o.PriceOptions,
    symbolic: bool = flag(
        "No numbers: exact rationals times latencies alpha, seconds per byte beta and the payload "
        "n.  Sizes do not count then."
    ),
    latex: bool = flag("Write --symbolic as LaTeX."),
    details: bool = o.DETAILS,
    json: bool = o.JSON,
) -> int:
    """The predicted time of requests and programs on a placement, or of a plan file.

    Of one request several programs may be given, which are compared; of several requests one for
    each that has programs, in the order printed: all-reduce, reduce-scatter, all-gather, and of a
    kind as given.  On a topology that names hosts, without a placement: ranks in order on the
    hosts in theirs.
    """
    from p2smt.cli.output import note_beside
    from p2smt.cluster.allocation import uneven_note
    from p2smt.errors import InputError

    if plan:
        if sizes is not None and are_schedules(plan):
            only = o.PriceOptions(library=prices.library)
            refuse_beside_schedules(
                {
                    "--axes": axes,
                    "--placement": placement,
                    "--hosts": hosts,
                    "--program": program,
                    "--objective": objective,
                    "--symbolic": symbolic or latex or None,
                    "requests": None if requests == o.RequestOptions() else requests,
                    "--algorithm, --nominal or --pipeline": None if prices == only else prices,
                }
            )
            shown = o.ShownOptions(details, json)
            return cost_schedules(plan, cluster, prices.library, sizes, plot, shown)
        if len(plan) > 1:
            rule = "are priced side by side where they are schedules, with --topology and --sizes"
            raise InputError(f"{len(plan)} files", rule, "name one plan, or schedules and --sizes")
        others = (
            axes,
            placement,
            hosts,
            program,
            sizes,
            plot,
            objective,
            symbolic or None,
            latex or None,
        )
        groups = (
            (cluster, o.ClusterOptions()),
            (requests, o.RequestOptions()),
            (prices, o.PriceOptions()),
        )
        if any(one is not None for one in others) or any(one != none for one, none in groups):
            _refuse_others(plan[0], cluster.topology)
            raise InputError("a plan file", "stands alone", "drop the other options")
        return _of_file(plan[0], details, json)
    symbols = symbolic or latex
    problem = o.requested(cluster, axes, requests, prices, objective or "sum", timed=not symbols)
    if not symbols and (unknown := uneven_note(problem.topology)):
        note_beside(unknown)
    if hosts is not None or (placement is None and problem.topology.hosts is not None):
        apart: dict[str, object] = {
            "--placement": placement,
            "--program": program,
            "--sizes": sizes,
            "--plot": plot,
        }
        apart |= {"--symbolic": symbolic or None, "--latex": latex or None}
        return _in_order(problem, requests, hosts, apart, details, json)
    asked = o.placed_on(problem, placement, requests, timed=not symbols)
    if symbols:
        numeric = {"--sizes": sizes, "--plot": plot, "--objective": objective}
        numeric |= {"--pipeline": prices.pipeline}
        return _symbolic(asked, program or [], numeric, latex, details, json)
    if sizes is not None:
        return _sweep(asked, program or [], sizes, plot, details, json)
    if plot is not None:
        raise InputError("--plot", "draws times over sizes", "give --sizes 1KiB..8GiB too")
    return _once(asked, program or [], details, json)


def _once(asked: o.PlacedRequests, programs: list[str], details: bool, as_json: bool) -> int:
    from p2smt.cli.output import note
    from p2smt.plans.given_program import answer_notes, candidates, cost_of
    from p2smt.report.costs.request_table import single_notes

    problem = asked.of(None)
    found = [cost_of(problem, asked.placement, c) for c in candidates(problem, programs)]
    for text in answer_notes(problem, found):
        note(text)
    for text in single_notes(problem, asked.placement, [a for one in found for a in one.requests]):
        note(text)
    return _tell(problem, found, details, as_json)


def _tell(problem: Problem, found: Sequence[Alternative], details: bool, as_json: bool) -> int:
    from p2smt.cli.output import tell_tables
    from p2smt.report.costs.cost_tables import cost_data, cost_tables
    from p2smt.report.screens.cost_screens import cost_screen

    shown = cost_tables if details else cost_screen
    tell_tables(as_json, lambda: cost_data(problem, found), lambda: shown(problem, found))
    return 0


def _in_order(
    problem: Problem,
    requests: o.RequestOptions,
    hosts: Text,
    others: Mapping[str, object],
    details: bool,
    as_json: bool,
) -> int:
    """Each request by one collective, ranks lying on named hosts in the order of these.

    Raises:
        InputError: one of the other options is given, or there are too few hosts.
    """
    from p2smt.cli.solve_command import hosts_of
    from p2smt.cluster.allocation import check_stated
    from p2smt.errors import InputError
    from p2smt.parallelism.rank_list import RankList
    from p2smt.plans.solution import rank_alternative
    from p2smt.search.allocation.cell_grids import host_order
    from p2smt.search.comparison import on_hosts
    from p2smt.search.solve import as_named

    for name, value in others.items():
        if value:
            rule = "is not for ranks that lie on hosts in their order"
            raise InputError(name, rule, "drop it, or --hosts and give --placement")
    requests.sized()
    problem, listed = on_hosts(as_named(problem), hosts_of(hosts, problem.topology))
    check_stated(problem.topology)
    ranks = host_order(problem, listed).ravel().tolist()
    found = [rank_alternative(problem, RankList(tuple(ranks), problem.axis_sizes))]
    return _tell(problem, found, details, as_json)


def _sweep(
    asked: o.PlacedRequests,
    programs: list[str],
    sizes: str,
    plot: str | None,
    details: bool,
    as_json: bool,
) -> int:
    from p2smt.cli.output import note, tell_tables, writable
    from p2smt.plans.given_program import answer_notes, sweep
    from p2smt.report.costs.cost_tables import sweep_data
    from p2smt.report.costs.sweep import plot_format, sweep_tables, write_plot
    from p2smt.report.screens.cost_screens import sweep_screen
    from p2smt.report.text import printable
    from p2smt.units import parse_sizes

    if plot is not None:
        writable(plot)
        plot_format(plot)
    payloads = parse_sizes(sizes, "--sizes")
    found = sweep(asked.of(payloads[0]), asked.placement, payloads, programs)
    for text in answer_notes(found.problem, [one for row in found.by_size for one in row]):
        note(text)
    if any(asked.sized):
        note("--sizes takes the place of the sizes that requests have")
    if plot is not None:
        write_plot(found, plot)
    lines = [] if plot is None else [f"\nplot written to {printable(plot)}"]
    shown = sweep_tables if details else sweep_screen
    tell_tables(as_json, lambda: sweep_data(found), lambda: shown(found), lines)
    return 0


def _symbolic(
    asked: o.PlacedRequests,
    programs: list[str],
    numeric: Mapping[str, str | None],
    latex: bool,
    details: bool,
    as_json: bool,
) -> int:
    """Print symbolic costs; ``numeric``: options that ask for numbers, by name.

    Raises:
        InputError: one of these is given, a program has no symbolic cost, or no step runs by the
            algorithm named.
    """
    from p2smt.cli.output import note, tell
    from p2smt.collectives.names import RequestKind
    from p2smt.cost.requested_algorithms import NamedStep, named_notes
    from p2smt.errors import InputError
    from p2smt.plans.given_program import candidates, placed_programs
    from p2smt.report.costs.symbolic_text import PricedInSymbols, symbolic_data, symbolic_lines
    from p2smt.report.screen import fitted, full_width

    for name, given in numeric.items():
        if given is not None:
            raise InputError(name, "asks for numbers, and --symbolic has none", "drop one of them")
    problem = asked.problem
    found = [
        PricedInSymbols(placed, placed.symbolic())
        for texts in candidates(problem, programs)
        for placed in placed_programs(problem, asked.placement, texts)
    ]
    steps = [
        NamedStep(str(instruction), instruction.collective, way.algorithm)
        for one in found
        if one.placed.program is not None
        for instruction, step in zip(one.placed.program.instructions, one.cost.steps, strict=True)
        if instruction.collective is not RequestKind.ALL_TO_ALL
        for way in step.ways
    ]
    for text in named_notes(problem.topology, problem.algorithms, steps):
        note(text)

    def lines() -> Iterable[str]:
        every = symbolic_lines(found, latex)
        return every if details or latex else fitted(full_width(every))

    tell(as_json, lambda: symbolic_data(found), lines)
    return 0


def _of_file(path: str, details: bool, as_json: bool) -> int:
    """The verdict on a plan, and of a valid one its requests, as `solve` shows them."""
    from p2smt.resharding.plan_file import is_redistribution

    return (_redistribution if is_redistribution(path) else _plan)(path, details, as_json)


def _plan(path: str, details: bool, as_json: bool) -> int:
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.costs.cost_tables import plan_cost_data, plan_tables
    from p2smt.report.plan_data import report_lines
    from p2smt.report.screens.cost_screens import plan_cost_screen, verdict_first
    from p2smt.report.tables import show
    from p2smt.training.training_plan import check_training_plan

    plan = _read(path)
    report = check_training_plan(plan, f"plan {path[:200]!r}")
    if as_json:
        print_json(plan_cost_data(plan if report.valid else None, report))
    elif not details:
        show(*plan_cost_screen(plan, report, report_lines(report)))
    else:
        typer.echo("\n".join(verdict_first(report_lines(report))))
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


def _redistribution(path: str, details: bool, as_json: bool) -> int:
    """The verdict on a plan, and of a valid one its steps, as `redistribute` shows them."""
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.resharding_data import checked_plan_lines, plan_cost_data
    from p2smt.report.resharding_tables import headline, steps_table
    from p2smt.report.screens.cost_screens import redistribution_cost_screen, verdict_first
    from p2smt.report.tables import show
    from p2smt.resharding.plan_check import check_redistribution
    from p2smt.resharding.plan_file import read_redistribution

    report = check_redistribution(read_redistribution(path), f"plan {path[:200]!r}")
    plan = report.plan
    if as_json:
        print_json(plan_cost_data(report))
        return OK if report.valid else REFUTED
    lines = verdict_first(checked_plan_lines(report))
    if not details:
        show(*redistribution_cost_screen(plan if report.valid else None, lines))
    else:
        typer.echo("\n".join(lines))
        if report.valid and plan is not None:
            show("", "the file says " + "\n".join(headline(plan)), "", steps_table(plan))
    return OK if report.valid else REFUTED


def _refuse_others(path: str, topology: str | None) -> None:
    """Files that have a time elsewhere, or none.

    Raises:
        InputError: it is a schedule, or the certificate of a bound.
    """
    from p2smt.api.files import is_certificate, is_size_certificate
    from p2smt.errors import InputError
    from p2smt.interop.schedule_files import format_of, schedule_text

    given, bound = f"file {path[:200]!r}", False
    found = format_of(schedule_text(path) or "")
    if found is not None:
        rule = f"is a schedule ({found.title}), not a plan"
        name = "NAME" if topology is None else topology[:60]
        remedy = f"use `p2smt verify FILE --cost SIZE --topology {name}`, or --sizes here"
        raise InputError(given, rule, remedy)
    with suppress(InputError):  # what is no JSON is said by those who read it
        bound = is_certificate(path) or is_size_certificate(path)
    if bound:
        rule = "is the certificate of a bound, which no time goes with"
        raise InputError(given, rule, "check it with `p2smt verify FILE`")


def are_schedules(paths: Sequence[str]) -> bool:
    """Whether files are schedules, all of them or the first of several."""
    from p2smt.interop.schedule_files import schedule_text

    return any(schedule_text(path) is not None for path in paths)


def refuse_beside_schedules(others: Mapping[str, object]) -> None:
    """What has no say where schedules are priced.

    Raises:
        InputError: one of these options, by name, is given.
    """
    from p2smt.errors import InputError

    for name, value in others.items():
        if value is not None:
            raise InputError(name, "does not go with schedules", "drop it")


def cost_schedules(
    paths: Sequence[str],
    cluster: o.ClusterOptions,
    library: Text,
    sizes: str,
    plot: Text,
    shown: o.ShownOptions,
) -> int:
    """The predicted times of schedules over payloads, by the best protocol, a call's cost included.

    Raises:
        InputError: a file is no schedule, they are of several collectives, or do not fit the
            topology; a payload or the plot's name is not understood.
    """
    from p2smt.cli.output import tell_tables, writable
    from p2smt.cli.schedules.size_options import priced_under
    from p2smt.report.costs.sweep import (
        TimedSchedules,
        plot_format,
        timed_data,
        timed_tables,
        write_timed_plot,
    )
    from p2smt.report.text import printable
    from p2smt.units import parse_sizes

    if plot is not None:
        writable(plot)
        plot_format(plot)
        o.check_kept(plot, *paths, cluster.topology, library)
    payloads, schedules = parse_sizes(sizes, "--sizes"), _read_schedules(paths)
    topology = priced_under(cluster.topology, library, cluster.use)
    found = TimedSchedules.of(schedules, topology, payloads)
    if plot is not None:
        write_timed_plot(found, plot)
    lines = [] if plot is None else [f"\nplot written to {printable(plot)}"]
    tell_tables(
        shown.json,
        lambda: timed_data(found),
        lambda: timed_tables(found),
        lines,
        details=shown.details,
    )
    return 0


def _read_schedules(paths: Sequence[str]) -> dict[str, Schedule]:
    """The schedules by the names of their files, all of one collective.

    Raises:
        InputError: one is none, is named twice, or is of another collective than the first.
    """
    from p2smt.errors import InputError
    from p2smt.interop.reading import AS_IT_STANDS
    from p2smt.interop.schedule_files import read_schedule, require_json, schedule_text

    found: dict[str, Schedule] = {}
    for path in paths:
        text = schedule_text(path)
        if text is None:
            require_json(path)
            raise InputError(f"file {path[:200]!r}", "is no schedule", "name schedules alone")
        if path in found:
            raise InputError(f"file {path[:200]!r}", "is named twice", "name it once")
        found[path] = read_schedule(text, path, AS_IT_STANDS)
    kinds = {path: one.contract.collective for path, one in found.items()}
    first, kind = next(iter(kinds.items()))
    for path, other in kinds.items():
        if other != kind:
            rule = f"is a schedule of {other}, and {first[:60]} one of {kind}"
            raise InputError(f"file {path[:200]!r}", rule, "compare schedules of one collective")
    return found
