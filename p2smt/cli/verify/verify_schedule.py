"""`p2smt verify` for a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.cli.schedules.schedule_options import ScheduleOptions
    from p2smt.cluster.topology import Topology
    from p2smt.schedules.cost.predict import ScheduleCost
    from p2smt.schedules.families.family import ParametricReport
    from p2smt.schedules.model import Runnable, Schedule
    from p2smt.schedules.verify.repair import RepairSearch
    from p2smt.schedules.verify.report import Report, Verdict


def verify_schedule(text: str, source: str, asked: ScheduleOptions, json: bool) -> int:
    """Check a schedule in every interleaving."""
    from p2smt.cli.output import print_json
    from p2smt.cluster.allocation import unstated_levels
    from p2smt.interop.schedule_files import read_schedule, runnable
    from p2smt.report.orders import no_time_line
    from p2smt.report.schedules.schedule_data import schedule_data, wrapped
    from p2smt.schedules.verify.verify import verify

    depth, limit_s, scene, wanted = asked.depth(), asked.limit_s(), asked.scene(), asked.wanted()
    schedule = read_schedule(text, source, asked.reading())
    runs = runnable(schedule, wanted, text, source)
    report = verify(schedule, depth, limit_s)
    search = _repair(schedule, report, asked.repair_s()) if asked.fix else None
    untimed = () if scene is None else unstated_levels(scene[0])
    cost = None if untimed else _cost(schedule, report, scene)
    if asked.trace is not None:
        _write_trace(asked.trace, schedule, report, cost)
    if json:
        notes = [no_time_line(untimed)] if untimed else None
        data = schedule_data(schedule, report, runs, search=search, cost=cost, notes=notes)
        print_json(data)
    else:
        _show(schedule, report, runs, search, cost, asked=wanted is not None)
        for line in wrapped([no_time_line(untimed)] if untimed else ()):
            typer.echo(line)
    return exit_code_of(report.verdict) or int(wanted is not None and not runs)


def check_family(text: str, source: str, asked: ScheduleOptions, json: bool) -> int:
    """Check a symbolic schedule at every size up to a bound, and seek a proof for all."""
    from p2smt.errors import InputError
    from p2smt.interop.schedule_files import format_of
    from p2smt.schedules.families.family import prove_family
    from p2smt.schedules.language.file import parse_symbolic

    upto = asked.bound()
    given = format_of(text)
    if given is None or not given.symbolic:
        rule = "is for symbolic YAML schedules and for --program"
        raise InputError("--upto", rule, "drop it; this file has one size")
    asked.refuse_for_family()
    found = prove_family(parse_symbolic(text, source), upto, asked.depth(), asked.limit_s())
    return show_family(found, json)


def show_family(found: ParametricReport, json: bool) -> int:
    """Print what is known of a family of schedules; the exit code."""
    from p2smt.cli.output import print_json
    from p2smt.report.schedules.schedule_data import family_data, family_lines, wrapped

    if json:
        print_json(family_data(found))
    else:
        for line in wrapped(family_lines(found)):
            typer.echo(line)
    return exit_code_of(found.verdict)


def _cost(
    schedule: Schedule, report: Report, scene: tuple[Topology, int] | None
) -> ScheduleCost | None:
    """The predicted time on a topology of a payload, of a schedule that is not wrong."""
    from p2smt.schedules.cost.predict import schedule_cost

    if scene is None or report.violations:
        return None
    topology, payload = scene
    return schedule_cost(schedule, topology, payload, report.fifo_depth)


def _repair(schedule: Schedule, report: Report, limit_s: float) -> RepairSearch | None:
    from p2smt.schedules.verify.repair import find_repair

    return find_repair(schedule, report, limit_s) if report.violations else None


def _show(
    schedule: Schedule,
    report: Report,
    runs: Runnable,
    search: RepairSearch | None,
    cost: ScheduleCost | None,
    *,
    asked: bool,
) -> None:
    from p2smt.report.schedules import schedule_data as lines_of

    lines = [
        *lines_of.schedule_lines(schedule, report),
        *(lines_of.runnable_lines(runs) if asked or not runs else ()),
        *(() if search is None else lines_of.repair_lines(schedule, search)),
        *(() if cost is None else lines_of.cost_lines(schedule, cost)),
    ]
    for line in lines_of.wrapped(lines):
        typer.echo(line)


def _write_trace(path: str, schedule: Schedule, report: Report, cost: ScheduleCost | None) -> None:
    """The predicted timeline, or the interleaving that shows the first violation, or any run."""
    import json

    from p2smt.files.write import write_atomically
    from p2smt.schedules.cost.trace import cost_trace, order_trace
    from p2smt.schedules.verify.verify import some_run

    if cost is not None:
        write_atomically(path, json.dumps(cost_trace(schedule, cost)))
        return
    broken = report.violations[0] if report.violations else None
    order = broken.order if broken and broken.order else some_run(schedule, report.fifo_depth)
    if not order:
        typer.echo("no trace is written: the schedule cannot be run at all", err=True)
        return
    write_atomically(path, json.dumps(order_trace(schedule, order, broken)))


def exit_code_of(verdict: Verdict) -> int:
    """The exit code of a verdict."""
    from p2smt.cli.codes import NOT_SETTLED, OK, REFUTED
    from p2smt.schedules.verify.report import Verdict

    match verdict:
        case Verdict.VALID:
            return OK
        case Verdict.INVALID:
            return REFUTED
        case Verdict.UNKNOWN:
            return NOT_SETTLED
