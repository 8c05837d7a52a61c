"""`p2smt calibrate --runs`: efficiencies from measured training runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.training.measured.fit import EfficiencyFit


def calibrate_runs(path: str, name: str | None, output: str | None, as_json: bool) -> int:
    """Fit a constant per framework and device; write that of ``name`` as a file.

    Raises:
        InputError: the runs cannot be fitted, or ``name`` is none of what was.
    """
    from p2smt.cli.codes import OK
    from p2smt.cli.output import print_json
    from p2smt.report.calibration import efficiency_data, efficiency_tables
    from p2smt.report.tables import show
    from p2smt.report.text import printable
    from p2smt.training.measured.file import read_runs
    from p2smt.training.measured.fit import fits, step_s

    runs = read_runs(path)
    found = fits(runs.counted, step_s)
    chosen = _chosen(found, name, output is not None)
    if output is not None:
        _write(chosen[0], path, output)
    if as_json:
        print_json(efficiency_data(chosen, runs))
        return OK
    show(efficiency_tables(chosen, runs))
    if output is not None:
        typer.echo(f"\nefficiency written to {printable(output)}")
    return OK


def _chosen(fits: Sequence[EfficiencyFit], name: str | None, one: bool) -> Sequence[EfficiencyFit]:
    """The fits of a name; all without one.

    Raises:
        InputError: there is none of that name, or one is needed and there are several.
    """
    from p2smt.errors import InputError, did_you_mean

    names = [fit.efficiency.name for fit in fits]
    if name is not None:
        found = [fit for fit in fits if fit.efficiency.name == name]
        if not found:
            remedy = did_you_mean(name, names) or f"fitted are {', '.join(names)}"
            raise InputError(f"--efficiency {name[:40]}", "is not among the runs' own", remedy)
        return found
    if one and len(fits) > 1:
        rule = "holds one efficiency, and the runs give " + ", ".join(names)
        raise InputError("--output", rule, "name one with --efficiency")
    return fits


def _write(fit: EfficiencyFit, path: str, output: str) -> None:
    from p2smt.files.write import write_atomically
    from p2smt.training.efficiencies.file import dump_efficiency

    write_atomically(output, dump_efficiency(fit.efficiency, (f"fitted to {path[:200]}",)))
