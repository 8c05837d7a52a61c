"""`p2smt synthesize --pareto`: search, write, show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.cli.synthesis.given_question import SizeTexts
    from p2smt.cli.synthesis.written_files import FileTexts, Written
    from p2smt.result import SearchLimits
    from p2smt.solvers.questions import Solver
    from p2smt.synthesis.question import SynthesisSetting


def show_frontier(
    setting: SynthesisSetting,
    asked: SizeTexts,
    limits: SearchLimits,
    solver: Solver,
    files: FileTexts,
    as_json: bool,
) -> int:
    """The exit code; files are written first, one of each kind for every point.

    Raises:
        InputError: a file cannot be written, or its runtime would not run it; said at last.
    """
    from p2smt.cli.codes import INTERRUPTED, NOT_SETTLED, OK
    from p2smt.cli.output import print_json
    from p2smt.cli.synthesis.live import live
    from p2smt.cli.synthesis.written_files import written_lines
    from p2smt.errors import InputError
    from p2smt.report.schedules.synthesis_data import frontier_data, frontier_tables
    from p2smt.report.tables import show
    from p2smt.report.text import printable
    from p2smt.synthesis.frontier import Ending, frontier

    with live() as tell:
        found = frontier(setting, asked.most_steps(), asked.most_chunks(), limits, solver, tell)
    written: dict[int, Written] = {one.size.steps: {} for one in found.schedules}
    refused: list[InputError] = []
    for one in found.schedules:
        try:
            files.of(one.size).write(one, written[one.size.steps])
        except InputError as error:
            refused.append(error)
    bounds = files.write_bounds(found)
    if as_json:
        print_json(frontier_data(found, written, bounds))
    else:
        show(frontier_tables(found))
        for each in written.values():
            for line in written_lines(each):
                typer.echo(line)
        for path in bounds.values():
            typer.echo(f"certificate written to {printable(path)}")
    if refused:
        raise refused[0]
    if found.ending is Ending.STOPPED:
        return INTERRUPTED
    return OK if found.proved else NOT_SETTLED
