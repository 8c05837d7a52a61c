"""The commands by name, each imported when it is called for: one call needs one of them."""

from __future__ import annotations

from collections.abc import Callable

COMMANDS = (
    "plan",
    "estimate",
    "solve",
    "placements",
    "programs",
    "compare",
    "cost",
    "crossings",
    "run",
    "synthesize",
    "redistribute",
    "verify",
    "convert",
    "export",
    "classics",
    "calibrate",
    "topology",
    "schema",
)
"""In the order of ``p2smt --help``."""
GROUP = "topology"
"""The one that has commands of its own."""


def command_of(name: str) -> Callable[..., int]:
    """The function of a command.

    Raises:
        KeyError: there is none of this name.
    """
    match name:
        case "plan":
            from p2smt.cli.workload.plan_command import plan

            return plan
        case "estimate":
            from p2smt.cli.workload.estimate_command import estimate

            return estimate
        case "solve":
            from p2smt.cli.solve.solve_command import solve

            return solve
        case "placements":
            from p2smt.cli.placements_command import placements

            return placements
        case "programs":
            from p2smt.cli.programs_command import programs

            return programs
        case "compare":
            from p2smt.cli.compare_command import compare

            return compare
        case "cost":
            from p2smt.cli.cost_command import cost

            return cost
        case "crossings":
            from p2smt.cli.crossings_command import crossings

            return crossings
        case "run":
            from p2smt.cli.runs.run_command import run

            return run
        case "synthesize":
            from p2smt.cli.synthesis.synthesize_command import synthesize

            return synthesize
        case "redistribute":
            from p2smt.cli.arrays.redistribute_command import redistribute

            return redistribute
        case "verify":
            from p2smt.cli.verify.verify_command import verify

            return verify
        case "convert":
            from p2smt.cli.schedules.convert_command import convert

            return convert
        case "export":
            from p2smt.cli.export_command import export

            return export
        case "classics":
            from p2smt.cli.schedules.classics_command import classics

            return classics
        case "calibrate":
            from p2smt.cli.calibrate_command import calibrate

            return calibrate
        case "schema":
            from p2smt.cli.schema_command import schema

            return schema
        case _:
            raise KeyError(name)
