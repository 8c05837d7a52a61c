"""`p2smt classics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import typer

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, Texts, argument, opened, option
from p2smt.cli.schedules.schedule_options import SIZES
from p2smt.units import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from p2smt.report.outputs.lists import ClassicOutput, ListedClassic
    from p2smt.schedules.classics import Classic, Value
    from p2smt.schedules.model import Schedule


@opened
def classics(
    *,
    name: Text = argument("NAME", "Which to make; without: lists them."),
    ranks: str = option("N", "How many ranks.", default="8"),
    sizes: Texts = SIZES,
    output: Text = option("FILE", "A file named .xml, .json or .yaml.", "-o", "--output"),
    force: bool = o.FORCE,
    shown: o.ShownOptions,
) -> int:
    """List the classic algorithms, or write one as a schedule."""
    from p2smt.cli.output import tell_tables
    from p2smt.errors import InputError
    from p2smt.report.outputs.lists import ClassicsOutput
    from p2smt.report.screens.list_screens import classics_screen
    from p2smt.schedules.classics import CLASSICS

    if name is not None:
        return _make(name, ranks, sizes or [], output, force, shown.json)
    if output is not None or sizes or force:
        raise InputError("an output file", "needs the name of an algorithm", "name one")
    found = [_listed(classic) for classic in CLASSICS.values()]
    tell_tables(
        shown.json,
        lambda: ClassicsOutput(classics=found),
        lambda: (_table([*CLASSICS.values()]),) if shown.details else classics_screen(found),
        details=shown.details,
    )
    return 0


def _make(
    name: str, ranks: str, sizes: list[str], output: str | None, force: bool, as_json: bool
) -> int:
    from p2smt.cli import given
    from p2smt.cli.output import print_json
    from p2smt.files.write import write_atomically
    from p2smt.interop.schedule_files import steps_in, written
    from p2smt.schedules.classics import classic
    from p2smt.schedules.language.schedule_text import dump_schedule

    texts = given.settings_of(sizes, "chunks=4")
    parameters = {key: _value(key, text) for key, text in texts.items()}
    schedule = classic(name, given.count_of(ranks, "ranks", 4096), **parameters)
    text = None if output is None else written(schedule, output, force=force)
    if output is not None and text is not None:
        write_atomically(output, text)
    if as_json:
        print_json(_made(schedule, output))
    elif output is None or text is None:
        typer.echo(dump_schedule(schedule), nl=False)
    else:
        count = steps_in(text, output, schedule)
        typer.echo(
            f"{counted(count, 'step')} of {counted(schedule.ranks, 'rank')} written to {output}"
        )
    return 0


def _made(schedule: Schedule, output: str | None) -> ClassicOutput:
    """What was made: where it was written, or the schedule file itself as data."""
    from p2smt.files.yaml_text import load_yaml_lines
    from p2smt.report.outputs.lists import ClassicOutput
    from p2smt.schedules.language.schedule_text import dump_schedule

    data = None
    if output is None:
        text = dump_schedule(schedule)
        data, _ = load_yaml_lines(text, f"schedule {schedule.name}", len(text))
    return ClassicOutput(
        name=schedule.name,
        ranks=schedule.ranks,
        steps=len(schedule.steps),
        output=output,
        schedule=cast("dict[str, Any] | None", data),
    )


def _value(name: str, text: str) -> Value:
    """Of ``chunks=4``, ``fused=true`` or ``dims=2,3``."""
    from p2smt.cli import given

    if text in ("true", "false"):
        return text == "true"
    numbers = [given.count_of(part, name[:40], least=0) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 and name != "dims" else tuple(numbers)


def _listed(classic: Classic) -> ListedClassic:
    from p2smt.report.outputs.lists import ListedClassic

    return ListedClassic(
        name=classic.name,
        collective=classic.collective,
        ranks=classic.sizes,
        parameters=classic.parameters,
        summary=classic.summary,
    )


def _table(found: list[Classic]) -> RenderableType:
    from p2smt.report.tables import table

    rows = [
        [c.name, c.collective, c.sizes, " ".join(c.parameters)]
        for c in sorted(found, key=lambda c: c.collective)
    ]
    return table("classic algorithms", ["name", "collective", "ranks", "parameters"], rows)
