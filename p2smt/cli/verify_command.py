"""`p2smt verify`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from p2smt.cli import options as o


def verify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A plan file written by solve -o.")],
    json: o.JsonOption = False,
) -> int:
    """Check a plan file: what its programs mean, and its times."""
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.plan import read_plan
    from p2smt.plan_check import check_plan
    from p2smt.report.plan_data import report_data
    from p2smt.report.text import one_line

    report = check_plan(read_plan(file), f"plan {file}")
    data = report_data(report)
    if json:
        print_json(data)
    else:
        for broken in data["violations"]:
            typer.echo(f"{broken['kind']}: {_where(broken)}{one_line(broken['message'], 2000)}")
        checked, count = ", ".join(dict.fromkeys(report.checked)), len(report.checked)
        requests = f"{count} request{'s' * (count != 1)}"
        typer.echo(f"{data['verdict']}: {requests}, checked on {checked}")
    return OK if report.valid else REFUTED


def _where(broken: dict[str, Any]) -> str:
    return f"request {broken['request']}: " if broken["request"] else ""
