"""`p2smt verify --program`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.cli.schedule_options import ScheduleOptions


def verify_program(
    text: str,
    levels: str | None,
    kind: str | None,
    algorithm: str | None,
    asked: ScheduleOptions,
    json: bool,
) -> int:
    """Check a program over all devices, by its meaning and chunk by chunk."""
    from p2smt.cli import given, scene_options
    from p2smt.cli.output import print_json
    from p2smt.cli.verify_schedule import exit_code_of
    from p2smt.errors import InputError
    from p2smt.program import parse_program
    from p2smt.report.schedule_data import family_data, family_lines, wrapped
    from p2smt.schedules.lower_build import Lowering
    from p2smt.schedules.program_family import all_factors, prove_program

    names, sizes = given.levels_of(asked.topology, levels)
    choices = [sizes] if asked.upto is None else all_factors(len(names), asked.bound())
    if sizes not in choices:
        rule = f"is not among the sizes of at most {asked.upto} ranks"
        raise InputError(f"levels {','.join(map(str, sizes))}", rule, "raise --upto")
    found = prove_program(
        parse_program(text),
        names,
        choices,
        scene_options.program_kind(kind),
        Lowering(algorithm or "ring"),
        asked.depth(),
    )
    if json:
        print_json(family_data(found))
    else:
        for line in wrapped(family_lines(found)):
            typer.echo(line)
    return exit_code_of(found.verdict)
