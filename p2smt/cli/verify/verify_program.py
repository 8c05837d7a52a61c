"""`p2smt verify --program`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.cli.schedules.schedule_options import ScheduleOptions


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
    from p2smt.cli.verify.verify_schedule import show_family
    from p2smt.errors import InputError
    from p2smt.programs.program import parse_program
    from p2smt.schedules.families.family import all_factors, prove_program
    from p2smt.schedules.lower.assemble import Lowering

    asked.refuse_for_program()
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
    return show_family(found, json)
