"""`p2smt synthesize` where the time limit came before the fabric was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.cli.synthesis.given_question import SettingTexts
    from p2smt.synthesis.question import ScheduleSize


def show_unmade(
    texts: SettingTexts, size: ScheduleSize | None, wall_s: float, as_json: bool
) -> int:
    """The exit code; ``size``: what was asked, None with --pareto."""
    from p2smt.cli.codes import NOT_SETTLED
    from p2smt.cli.output import print_json
    from p2smt.report.schedules.synthesis_data import UNMADE, unmade_data
    from p2smt.report.text import printable
    from p2smt.synthesis.question import shown_collective

    fabric, collective = str(texts.fabric), texts.named_collective()
    if as_json:
        print_json(unmade_data(fabric, collective, int(texts.root or 0), size, wall_s))
    else:
        typer.echo(f"unknown: {UNMADE}")
        typer.echo(printable(f"{shown_collective(collective)} on {fabric}"))
    return NOT_SETTLED
