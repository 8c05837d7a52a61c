"""`p2smt verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o


def verify(
    file: Annotated[str, typer.Argument(help="A plan file written by solve -o.")],
    json: o.JsonOption = False,
) -> int:
    """Check a plan file: every program by the semantics, every time by the cost model."""
    from p2smt import cli
    from p2smt.plan import read_plan
    from p2smt.plan_check import check_plan

    report = check_plan(read_plan(file), f"plan {file}")
    verdict = "valid" if report.valid else "invalid"
    violations = [
        {
            "kind": broken.kind.value,
            "request": n + 1,
            "step": broken.step,
            "rank": broken.rank,
            "chunk": broken.chunk,
            "message": broken.message,
        }
        for n, broken in report.violations
    ]
    violations += [
        {
            "kind": "cost",
            "request": None,
            "step": None,
            "rank": None,
            "chunk": None,
            "message": note,
        }
        for note in report.cost_notes
    ]
    if json:
        o.print_json(
            {
                "verdict": verdict,
                "violations": violations,
                "objective_s": report.objective_s,
                "seconds": list(report.seconds),
                "checked": list(report.checked),
            }
        )
    else:
        for broken in violations:
            where = f"request {broken['request']}: " if broken["request"] else ""
            typer.echo(f"{broken['kind']}: {where}{broken['message']}")
        checked = ", ".join(dict.fromkeys(report.checked))
        typer.echo(f"{verdict}: {len(report.checked)} requests, checked on {checked}")
    return cli.OK if report.valid else cli.REFUTED
