"""`p2smt crossings --sufficient`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.plans.crossings.certificate import SymbolicSetting
    from p2smt.result import SearchLimits


def show_least_set(
    setting: SymbolicSetting, limits: SearchLimits, out: str | None, latex: bool, as_json: bool
) -> int:
    """Find the set, write its certificate, and print it."""
    from p2smt.cli.codes import exit_code
    from p2smt.cli.output import note, print_json
    from p2smt.files.write import write_atomically
    from p2smt.plans.crossings.file import least_set_text
    from p2smt.report.crossings.least_set import least_set_answer, least_set_lines
    from p2smt.report.text import printable
    from p2smt.result import Status
    from p2smt.search.crossings.least import least_set, table_of

    found = least_set(setting, limits)
    proved = found.status is Status.OPTIMAL
    written = out if proved else None
    if written is not None:
        write_atomically(written, least_set_text(found))
    elif out is not None:
        note("no certificate is written: nothing is proved")
    if as_json:
        from p2smt.cli.crossings_given import ratios_of

        levels = len(setting.factors)
        rows = ratios_of(levels, None, None, None) if proved and levels > 1 else ()
        print_json(least_set_answer(found, written, table_of(found.costs, rows) if rows else None))
    else:
        for line in least_set_lines(found, latex):
            typer.echo(line)
        if written is not None:
            typer.echo(f"certificate written to {printable(written)}")
    return exit_code(found.status)
