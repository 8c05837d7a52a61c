"""`p2smt verify` of the certificate of a least sufficient set."""

from __future__ import annotations

import typer


def verify_least_set(file: str, json: bool, prove: bool, time_limit: str | None) -> int:
    """Check a certificate by fractions alone; ``prove``: list the programs again, too."""
    from p2smt.cli import given
    from p2smt.cli.codes import NOT_SETTLED, OK, REFUTED
    from p2smt.cli.output import note, print_json
    from p2smt.plans.crossings.check import check_least_set
    from p2smt.plans.crossings.file import read_least_set
    from p2smt.report.crossings.least_set import certificate_data, certificate_lines

    report, complete, cut = check_least_set(read_least_set(file)), None, False
    if prove and report.valid:
        from p2smt.search.crossings.least import lists_every_program

        complete = lists_every_program(report.claim, given.limits_of(time_limit, "0"))
        cut = complete is None
    if cut:
        note("the time limit came before the programs were listed")
    if json:
        print_json(certificate_data(report, complete))
    else:
        typer.echo("\n".join(certificate_lines(report, complete)))
    if cut:
        return NOT_SETTLED
    return OK if report.valid and complete is not False else REFUTED
