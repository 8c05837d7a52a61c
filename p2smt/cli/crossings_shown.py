"""`p2smt crossings` without --sufficient: cells of ratios and payloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.cli.scene_options import RequestTexts
    from p2smt.plans.crossings.certificate import SymbolicSetting
    from p2smt.result import SearchLimits
    from p2smt.search.crossings.least import LevelRatios

OUT_OF_TIME = "the time limit came before the programs were listed: every cell is open"


@dataclass(frozen=True, slots=True)
class PlacedTexts:
    """The options that say which request runs where, as given."""

    topology: str
    axes: str | None
    placement: str | None
    texts: RequestTexts
    algorithm: str | None
    nominal: bool


def show_table(
    setting: SymbolicSetting,
    rows: tuple[LevelRatios, ...],
    limits: SearchLimits,
    plot: str | None,
    as_json: bool,
) -> int:
    """Cells over ratios and payloads of plain factors."""
    from p2smt.cli import restrictions
    from p2smt.cli.codes import NOT_SETTLED, OK
    from p2smt.cli.output import note, print_json
    from p2smt.report.crossings.cell_tables import crossing_data, crossing_tables
    from p2smt.report.tables import show
    from p2smt.report.text import printable
    from p2smt.search.crossings.least import crossing_table

    if plot is not None:
        from p2smt.report.costs.sweep import plot_format

        restrictions.writable(plot)
        plot_format(plot)
    found = crossing_table(setting, rows, limits)
    if found is None:
        note(OUT_OF_TIME)
    if as_json:
        print_json(crossing_data(setting, found))
    elif found is not None:
        show(*crossing_tables(setting, found))
    if found is None:
        return NOT_SETTLED
    if plot is not None:
        from p2smt.report.crossings.region_plot import write_regions

        write_regions(setting, found, plot)
        if not as_json:
            typer.echo(f"\nplot written to {printable(plot)}")
    return OK


def show_placed(placed: PlacedTexts, length: str, limits: SearchLimits, as_json: bool) -> int:
    """What is best on a topology: of one request by its payload, of several by payloads' ratio."""
    one = placed.placement is not None or len(placed.texts.texts()) == 1
    return (show_payloads if one else show_placements)(placed, length, limits, as_json)


def show_payloads(placed: PlacedTexts, length: str, limits: SearchLimits, as_json: bool) -> int:
    """Cells over the payload of a request on a topology, with its numbers."""
    from dataclasses import replace

    from p2smt.cli import given
    from p2smt.cli.codes import NOT_SETTLED, OK
    from p2smt.cli.output import note, print_json
    from p2smt.cli.scene_options import placement_of, requested
    from p2smt.cluster.allocation import check_even
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
    from p2smt.report.crossings.cell_tables import payload_data, payload_tables
    from p2smt.report.tables import show
    from p2smt.search.crossings.on_topology import payload_crossings

    most = given.count_of(length, "length", MAX_PROGRAM_LENGTH)
    problem = requested(
        placed.topology, placed.axes, placed.texts, placed.algorithm, nominal=placed.nominal
    )
    check_even(problem.topology)
    problem = replace(problem, max_length=most)
    matrix = None
    if placed.placement is not None:
        matrix = placement_of(placed.placement, problem.topology, problem.axes).matrix
    found = payload_crossings(problem, matrix, limits)
    if found is None:
        note(OUT_OF_TIME)
    if as_json:
        print_json(payload_data(problem, found))
    elif found is not None:
        show(*payload_tables(problem, found))
    return OK if found is not None and found.complete else NOT_SETTLED


def show_placements(placed: PlacedTexts, length: str, limits: SearchLimits, as_json: bool) -> int:
    """Cells over the ratio of the first two requests' payloads, on a topology."""
    from dataclasses import replace

    from p2smt.cli import given
    from p2smt.cli.codes import NOT_SETTLED, OK
    from p2smt.cli.output import note, print_json
    from p2smt.cli.scene_options import requested
    from p2smt.cluster.allocation import check_even
    from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
    from p2smt.report.crossings.cell_tables import placement_data, placement_tables
    from p2smt.report.tables import show
    from p2smt.search.crossings.on_topology import placement_cells

    most = given.count_of(length, "length", MAX_PROGRAM_LENGTH)
    problem = requested(
        placed.topology, placed.axes, placed.texts, placed.algorithm, nominal=placed.nominal
    )
    check_even(problem.topology)
    check_shares([text for _, text in placed.texts.texts()])
    problem = replace(problem, max_length=most)
    found = placement_cells(problem, limits)
    if found is None:
        note(OUT_OF_TIME)
    if as_json:
        print_json(placement_data(problem, found))
    elif found is not None:
        show(*placement_tables(problem, found))
    return NOT_SETTLED if found is None else OK


def check_shares(texts: list[str]) -> None:
    """Whether the requests from the second on all have sizes, which say their shares, or none.

    Raises:
        InputError: some have.
    """
    from p2smt.errors import InputError

    rest = texts[1:]
    unsized = [text for text in rest if "=" not in text]
    if len(unsized) not in (0, len(rest)):
        remedy = "give one to each request from the second on, or to none"
        raise InputError(f"request {unsized[0][:60]!r}", "has no size, and others have", remedy)
