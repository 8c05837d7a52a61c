"""One question of `p2smt synthesize`: search, write, show."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.cli.spread_options import SpreadTexts
    from p2smt.cli.synthesis.written_files import FileTexts, Written
    from p2smt.result import SearchLimits
    from p2smt.solvers.questions import Solver
    from p2smt.synthesis.question import Answer, ScheduleSize, SynthesisSetting


def show_synthesis(
    setting: SynthesisSetting,
    size: ScheduleSize,
    limits: SearchLimits,
    solver: Solver,
    files: FileTexts,
    texts: SpreadTexts,
    as_json: bool,
) -> int:
    """The exit code; files are written first, as what is shown may go to a closed pipe."""
    from p2smt.cli.codes import INTERRUPTED
    from p2smt.cli.output import print_json
    from p2smt.cli.spread_options import spread_over
    from p2smt.cli.synthesis.live import live
    from p2smt.cli.synthesis.written_files import written_lines
    from p2smt.report.schedules.synthesis_data import synthesis_data, synthesis_tables
    from p2smt.report.tables import show
    from p2smt.synthesis.question import tell_nobody
    from p2smt.synthesis.synthesize import synthesize

    with spread_over(texts) as spread, nullcontext(tell_nobody) if spread else live() as tell:
        found = synthesize(setting, size, limits, solver, tell, spread)
    written: Written = {}
    try:
        files.write(found, written)
    finally:  # what was found is shown also where a runtime would not run its file
        if as_json:
            print_json(synthesis_data(found, written))
        else:
            show(synthesis_tables(found))
            for line in written_lines(written):
                typer.echo(line)
    return INTERRUPTED if found.interrupted else answer_code(found.status)


def answer_code(answer: Answer) -> int:
    """The exit code of an answer."""
    from p2smt.cli.codes import INFEASIBLE, NOT_SETTLED, OK
    from p2smt.synthesis.question import Answer

    match answer:
        case Answer.SCHEDULE:
            return OK
        case Answer.NO_SCHEDULE:
            return INFEASIBLE
        case Answer.NO_SYMMETRIC | Answer.UNKNOWN:
            return NOT_SETTLED
