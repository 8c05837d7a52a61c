"""`p2smt run` for a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.runtime.options import RunOptions
    from p2smt.runtime.ranks.run_schedule import ScheduleResult
    from p2smt.runtime.schedules.job import ScheduleJob


def run_schedule_job(
    job: ScheduleJob, options: RunOptions, port: int, unverified: bool, as_json: bool
) -> int:
    """Run a schedule and show what came of it."""
    from p2smt.runtime.ranks.run_schedule import run_schedule

    result = run_schedule(job, options, port=port, unverified=unverified)
    return 0 if result is None else _finish(result, options, as_json)


def _finish(result: ScheduleResult, options: RunOptions, as_json: bool) -> int:
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.schedule_run import schedule_run_data, schedule_run_lines
    from p2smt.report.text import one_line

    if as_json:
        print_json(schedule_run_data(result, options))
    else:
        for line in schedule_run_lines(result, options):
            typer.echo(one_line(line, 2000))
    return OK if result.verified else REFUTED
