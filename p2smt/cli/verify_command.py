"""`p2smt verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli import schedule_options as so


def verify(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="A plan, or a schedule: MSCCL XML, MSCCL++ JSON, or YAML."
        ),
    ] = None,
    fifo_depth: so.DepthOption = None,
    collective: so.CollectiveOption = None,
    root: so.RootOption = None,
    out_of_place: so.OutOfPlaceOption = False,
    iterations: so.IterationsOption = None,
    fix: so.RepairOption = False,
    trace: so.TraceOption = None,
    cost: so.CostOption = None,
    topology: o.TopologyOption = None,
    sizes: so.SizesOption = None,
    upto: so.UptoOption = None,
    runtime: so.RuntimeOption = None,
    program: so.CheckedProgramOption = None,
    levels: o.LevelsOption = None,
    kind: o.KindOption = None,
    algorithm: so.LoweringOption = None,
    time_limit: o.TimeOption = None,
    json: o.JsonOption = False,
) -> int:
    """Check a plan, a program, or a schedule in every interleaving."""
    asked = so.ScheduleOptions(
        fifo_depth=fifo_depth,
        collective=collective,
        root=root,
        out_of_place=out_of_place,
        iterations=iterations,
        fix=fix,
        trace=trace,
        time_limit=time_limit,
        cost=cost,
        topology=topology,
        upto=upto,
        sizes=tuple(sizes or ()),
        runtime=runtime,
    )
    so.check_subject(file, program, levels, kind, algorithm)
    if file is not None:
        return _verify_file(file, asked, json)
    from p2smt.cli.verify_program import verify_program

    return verify_program(program or "", levels, kind, algorithm, asked, json)


def _verify_file(file: str, asked: so.ScheduleOptions, json: bool) -> int:
    from p2smt.cli.verify_schedule import verify_family, verify_schedule
    from p2smt.interop.schedule_files import require_json, schedule_text

    text = schedule_text(file)
    if text is None:
        require_json(file)
        asked.refuse_for_plan()
        return verify_plan(file, json)
    return (verify_schedule if asked.upto is None else verify_family)(text, file, asked, json)


def verify_plan(file: str, json: bool) -> int:
    """Check a plan file: what its programs mean, and its times."""
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.plans.check import check_plan
    from p2smt.plans.file import read_plan
    from p2smt.report.plan_data import report_data, report_lines

    report = check_plan(read_plan(file), f"plan {file[:200]!r}")
    if json:
        print_json(report_data(report))
    else:
        typer.echo("\n".join(report_lines(report)))
    return OK if report.valid else REFUTED
