"""`p2smt verify` of the certificate of a bound on schedules."""

from __future__ import annotations

import typer


def verify_certificate(file: str, json: bool, fabric: str | None) -> int:
    """Derive a bound again by fractions alone; ``fabric``: whether it is about that one."""
    from p2smt.api.files import verify_bound
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.fabric.file import load_fabric
    from p2smt.report.schedules.schedule_data import certificate_data, certificate_lines

    known = None if fabric is None else load_fabric(fabric)
    report, name = verify_bound(file, known), None if known is None else known.name
    if json:
        print_json(certificate_data(report, name))
    else:
        typer.echo("\n".join(certificate_lines(report, name)))
    return OK if report.valid else REFUTED
