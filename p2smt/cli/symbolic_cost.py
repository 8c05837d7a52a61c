"""`p2smt cost --symbolic`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.cli.scene_options import PlacedRequests


def show_symbolic(
    asked: PlacedRequests,
    programs: list[str],
    numeric: Mapping[str, str | None],
    latex: bool,
    as_json: bool,
) -> int:
    """Print symbolic costs; ``numeric``: options that ask for numbers, by name.

    Raises:
        InputError: one of these is given, a program has no symbolic cost, or no step runs by the
            algorithm named.
    """
    from p2smt.cli.output import note, print_json
    from p2smt.cost.requested_algorithms import NamedStep, named_notes
    from p2smt.errors import InputError
    from p2smt.plans.given_program import candidates, placed_programs
    from p2smt.report.costs.symbolic_text import PricedInSymbols, symbolic_data, symbolic_lines

    for name, given in numeric.items():
        if given is not None:
            raise InputError(name, "asks for numbers, and --symbolic has none", "drop one of them")
    problem = asked.problem
    found = [
        PricedInSymbols(placed, placed.symbolic())
        for texts in candidates(problem, programs)
        for placed in placed_programs(problem, asked.placement, texts)
    ]
    steps = [
        NamedStep(str(instruction), instruction.collective, way.algorithm)
        for one in found
        if one.placed.program is not None
        for instruction, step in zip(one.placed.program.instructions, one.cost.steps, strict=True)
        for way in step.ways
    ]
    for text in named_notes(problem.topology, problem.algorithms, steps):
        note(text)
    if as_json:
        print_json(symbolic_data(found))
    else:
        for line in symbolic_lines(found, latex):
            typer.echo(line)
    return 0
