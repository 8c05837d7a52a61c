"""`p2smt crossings`."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import typer

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, flag, opened, option, part
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.parallelism.request import Problem
    from p2smt.plans.crossings.least_set import SymbolicSetting
    from p2smt.result import SearchLimits
    from p2smt.search.crossings.least import LevelRatios

OUT_OF_TIME = "the time limit came before the programs were listed: every cell is open"
_RATIO = re.compile(r"[0-9]{1,15}(/[0-9]{1,15}|\.[0-9]{1,15})?")
_MOST_ROWS = 64


@opened
def crossings(
    *,
    factors: Text = option("N,N,..", "Sizes of levels such as 4,8, outermost first."),
    ports: Text = option("N,N,..", "Ports of an entity of each level; default: 1 each."),
    topology: Text = o.TOPOLOGY,
    axes: Text = o.AXES,
    placement: Text = o.PLACEMENT,
    requests: o.RequestOptions = part("reduce", "reduce_scatter", "all_gather"),
    prices: o.PriceOptions = part("algorithm", "nominal"),
    kind: Text = o.KIND,
    length: str = o.LENGTH,
    sufficient: bool = flag(
        "The fewest programs of which one is always best, whatever the hardware, proved."
    ),
    latency_ratio: Text = option(
        "R,..", "Latency of each level over that of the innermost, which is left out; default: 1."
    ),
    bandwidth_ratio: Text = option(
        "A..B,R,..",
        "How many times slower a port of each level is than one of the innermost; of the "
        "outermost also from A to B; default: 1..64, others 1.",
    ),
    cost_per_call: Text = option(
        "R",
        "Of a call, over the innermost latency; default: 0, with --sufficient an unknown c >= 0, "
        "which 0 drops.",
    ),
    plot: Text = option("FILE", "Draw the regions of --factors: .png, .svg or .pdf."),
    latex: bool = flag("Write costs of --sufficient as LaTeX."),
    out: Text = option("FILE", "Write the certificate of --sufficient.", "-o"),
    how: o.SearchOptions = part("time_limit", "seed"),
    shown: o.ShownOptions,
) -> int:
    """Which program is best, for which latencies, bandwidths and payloads: exactly.

    Of --factors (rings, numbers as ratios between levels), or of a request on a --topology with its
    library, on a --placement or on whichever is best; of several requests without --placement:
    which placement is best, by the ratio of the first two payloads, for large ones.
    """
    from p2smt.cli.output import writable

    limits = how.limits()
    writable(out)
    if (factors is None) == (topology is None):
        raise InputError("crossings", "take either --factors, or --topology with a request")
    ratios = {"--latency-ratio": latency_ratio, "--bandwidth-ratio": bandwidth_ratio}
    drawn = {**ratios, "--plot": plot}
    if sufficient and topology is None:
        _refuse(drawn, "goes with --factors alone", "drop it, or --sufficient")
    if not sufficient:
        extra = {"--out": out, "--latex": "" if latex else None}
        _refuse(extra, "goes with --sufficient", "add that, or drop it")
    if topology is not None:
        own = {"--ports": ports, "--cost-per-call": cost_per_call, "--kind": kind, **drawn}
        _refuse(own, "goes with --factors", "drop it")
        _refuse({"--sufficient": "" if sufficient else None}, "goes with --factors", "give these")
        one = placement is not None or len(requests.texts()) == 1
        problem = _placed(topology, axes, requests, prices, length)
        if one:
            return show_payloads(problem, placement, limits, shown)
        check_shares([text for _, text in requests.texts()])
        return show_placements(problem, limits, shown)
    placed_only = {"--axes": axes, "--placement": placement, "--algorithm": prices.algorithm}
    others = {"--nominal": prices.nominal, "requests": requests.some}
    placed_only |= {name: "" if told else None for name, told in others.items()}
    _refuse(placed_only, "goes with --topology", "drop it")
    if sufficient:
        setting = setting_of(factors, ports, kind, length, unknown_call(cost_per_call))
        return show_least_set(setting, limits, out, latex, shown.json)
    setting = setting_of(factors, ports, kind, length, cost_per_call not in (None, "0"))
    rows = ratios_of(len(setting.factors), latency_ratio, bandwidth_ratio, cost_per_call)
    return show_table(setting, rows, limits, plot, shown)


def _refuse(options: dict[str, str | None], rule: str, remedy: str) -> None:
    """Raise InputError for the first of these options that is given."""
    for name, value in options.items():
        if value is not None:
            raise InputError(name, rule, remedy)


# What the options say, as values.


def setting_of(
    factors: str | None, ports: str | None, kind: str | None, length: str, calls: bool
) -> SymbolicSetting:
    """The programs that are asked about; ``calls``: whether a call costs an unknown.

    Raises:
        InputError: factors of one, or ports that do not fit.
    """
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
    from p2smt.plans.crossings.least_set import SymbolicSetting

    if factors is None:
        raise InputError("factors", "are missing", "give --factors 4,8")
    sizes = given.sizes_of(factors, "factors")
    counts = (1,) * len(sizes) if ports is None else given.sizes_of(ports, "ports")
    most = given.count_of(length, "length", MAX_PROGRAM_LENGTH)
    found = SymbolicSetting(sizes, counts, given.program_kind(kind), most, calls)
    _ = found.scene  # what does not fit is refused before anything is searched
    return found


def unknown_call(cost_per_call: str | None) -> bool:
    """Whether the cost of a call is an unknown of the least set: it is, unless it is 0.

    Raises:
        InputError: another number.
    """
    if cost_per_call not in (None, "0"):
        rule = "is an unknown of --sufficient, or 0"
        raise InputError(f"--cost-per-call {cost_per_call[:40]!r}", rule, "give 0, or drop it")
    return cost_per_call is None


def ratio_of(text: str, what: str) -> Fraction:
    """A positive number such as 4, 1.5 or 1/8, or 0.

    Raises:
        InputError: it is none.
    """
    shaped = _RATIO.fullmatch(text.strip())
    if not shaped or ((shaped[1] or "").strip("/0") == "" and "/" in text):
        raise InputError(f"{what} {text[:40]!r}", "must be positive", "write it like 4 or 1/8")
    return Fraction(text.strip())


def ratios_of(
    levels: int, latency: str | None, bandwidth: str | None, cost_per_call: str | None
) -> tuple[LevelRatios, ...]:
    """The ratios of each row: one, or one for each doubling from A to B of ``A..B``.

    Raises:
        InputError: a ratio that is not positive, too many or too few of them, or a range from
            more to less.
    """
    from p2smt.search.crossings.least import LevelRatios

    one = Fraction(1)
    delays = [ratio_of(text, "latency ratio") for text in _each(latency, levels, "latency")]
    first, *others = _each(bandwidth or "1..64" + ",1" * (levels - 2), levels, "bandwidth")
    rest = [ratio_of(text, "bandwidth ratio") for text in others]
    call = ratio_of(cost_per_call or "0", "cost per call")
    return tuple(
        LevelRatios((*delays, one), (outer, *rest, one), call) for outer in _doublings(first)
    )


def _each(text: str | None, levels: int, what: str) -> list[str]:
    """A text for each level but the innermost."""
    parts = ["1"] * (levels - 1) if text is None else text.split(",")
    if levels < 2:
        raise InputError("one level", "has no ratios to an inner one", "give --factors 4,8")
    if len(parts) != levels - 1:
        rule = f"has {len(parts)} numbers, and there are {levels - 1} levels but the innermost"
        raise InputError(f"{what} ratio {(text or '')[:40]!r}", rule, "give one for each")
    return parts


def _doublings(text: str) -> list[Fraction]:
    low, dots, high = text.partition("..")
    least = ratio_of(low, "bandwidth ratio")
    if not dots:
        return [least]
    most = ratio_of(high, "bandwidth ratio")
    if not 0 < least < most:
        rule = "must go from a positive number to a larger one"
        raise InputError(f"bandwidth ratio {text[:40]!r}", rule, "write it like 1..64")
    found = [least]
    while found[-1] * 2 < most and len(found) < _MOST_ROWS:
        found.append(found[-1] * 2)
    return [*found, most]


# What is shown.


def show_table(
    setting: SymbolicSetting,
    rows: tuple[LevelRatios, ...],
    limits: SearchLimits,
    plot: str | None,
    shown: o.ShownOptions,
) -> int:
    """Cells over ratios and payloads of plain factors."""
    from p2smt.cli.codes import NOT_SETTLED, OK
    from p2smt.cli.output import note, tell_tables, writable
    from p2smt.report.crossings.cell_tables import crossing_data, crossing_tables
    from p2smt.report.text import printable
    from p2smt.search.crossings.least import crossing_table

    if plot is not None:
        from p2smt.report.costs.sweep import plot_format

        writable(plot)
        plot_format(plot)
    found = crossing_table(setting, rows, limits)
    if found is None:
        note(OUT_OF_TIME)
    tell_tables(
        shown.json,
        lambda: crossing_data(setting, found),
        lambda: () if found is None else crossing_tables(setting, found, short=not shown.details),
        details=shown.details,
    )
    if found is None:
        return NOT_SETTLED
    if plot is not None:
        from p2smt.report.crossings.region_plot import write_regions

        write_regions(setting, found, plot)
        if not shown.json:
            typer.echo(f"\nplot written to {printable(plot)}")
    return OK


def _placed(
    topology: str, axes: Text, requests: o.RequestOptions, prices: o.PriceOptions, length: str
) -> Problem:
    """The requests on a topology, with programs of at most that length."""
    from p2smt.cluster.topology import check_even
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH

    most = given.count_of(length, "length", MAX_PROGRAM_LENGTH)
    problem = o.requested(o.ClusterOptions(topology), axes, requests, prices)
    check_even(problem.topology)
    return replace(problem, max_length=most)


def show_payloads(
    problem: Problem, placement: Text, limits: SearchLimits, shown: o.ShownOptions
) -> int:
    """Cells over the payload of a request on a topology, with its numbers."""
    from p2smt.cli.codes import NOT_SETTLED, OK
    from p2smt.cli.output import note, tell_tables
    from p2smt.report.crossings.cell_tables import payload_data, payload_tables
    from p2smt.search.crossings.on_topology import payload_crossings

    matrix = None
    if placement is not None:
        matrix = o.placement_of(placement, problem.topology, problem.axes).matrix
    found = payload_crossings(problem, matrix, limits)
    if found is None:
        note(OUT_OF_TIME)
    tell_tables(
        shown.json,
        lambda: payload_data(problem, found),
        lambda: () if found is None else payload_tables(problem, found, short=not shown.details),
        details=shown.details,
    )
    return OK if found is not None and found.complete else NOT_SETTLED


def show_placements(problem: Problem, limits: SearchLimits, shown: o.ShownOptions) -> int:
    """Cells over the ratio of the first two requests' payloads, on a topology."""
    from p2smt.cli.codes import NOT_SETTLED, OK
    from p2smt.cli.output import note, tell_tables
    from p2smt.report.crossings.cell_tables import placement_data, placement_tables
    from p2smt.search.crossings.on_topology import placement_cells

    found = placement_cells(problem, limits)
    if found is None:
        note(OUT_OF_TIME)
    tell_tables(
        shown.json,
        lambda: placement_data(problem, found),
        lambda: () if found is None else placement_tables(problem, found),
        details=shown.details,
    )
    return NOT_SETTLED if found is None else OK


def check_shares(texts: list[str]) -> None:
    """Whether the requests from the second on all have sizes, which say their shares, or none.

    Raises:
        InputError: some have.
    """
    rest = texts[1:]
    unsized = [text for text in rest if "=" not in text]
    if len(unsized) not in (0, len(rest)):
        remedy = "give one to each request from the second on, or to none"
        raise InputError(f"request {unsized[0][:60]!r}", "has no size, and others have", remedy)


def show_least_set(
    setting: SymbolicSetting, limits: SearchLimits, out: str | None, latex: bool, as_json: bool
) -> int:
    """Find the set, write its certificate, and print it."""
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import note, tell
    from p2smt.files.write import write_atomically
    from p2smt.plans.crossings.least_set_file import least_set_text
    from p2smt.report.crossings.least_set import least_set_answer, least_set_lines
    from p2smt.report.text import printable
    from p2smt.result import Status
    from p2smt.search.crossings.least import least_set, table_of

    found = least_set(setting, limits)
    proved = found.status is Status.OPTIMAL
    written = out if proved else None
    if written is not None:
        write_atomically(written, least_set_text(found))
    elif out is not None:
        note("no certificate is written: nothing is proved")
    levels = len(setting.factors)
    rows = ratios_of(levels, None, None, None) if as_json and proved and levels > 1 else ()
    table = table_of(found.costs, rows) if rows else None
    lines = [] if written is None else [f"certificate written to {printable(written)}"]
    tell(
        as_json,
        lambda: least_set_answer(found, written, table),
        lambda: (*least_set_lines(found, latex), *lines),
    )
    return exit_code(found.status)
