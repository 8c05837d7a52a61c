"""`p2smt convert`."""

from __future__ import annotations

import typer

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, argument, opened, option, part
from p2smt.cli.schedules.schedule_options import ScheduleOptions


@opened
def convert(
    *,
    source: str = argument("IN", "A schedule of any format, or a plan.", needed=True),
    out: Text = argument("OUT", "A file named .xml (MSCCL), .json (MSCCL++), .yaml."),
    request: Text = option("N", "Of a plan: which request; default: 1."),
    group: Text = option(
        "N",
        "Of a plan: only this group of the request, from 1; default: all, to files OUT.1, OUT.2, "
        ".. with the ending of OUT (.yaml: all in one).",
    ),
    algorithm: Text = option(
        "NAME", "Of a plan: ring, tree or direct; default: the fastest, as predicted."
    ),
    asked: ScheduleOptions = part("collective", "root", "out_of_place", "sizes"),
    output: Text = option("FILE", "The same as OUT.", "-o"),
    force: bool = o.FORCE,
    shown: o.ShownOptions,
) -> int:
    """Write a schedule, or the groups of a plan's request, in another format: what it computes
    is kept."""
    from p2smt.cli.output import tell
    from p2smt.files.write import write_atomically
    from p2smt.interop.schedule_files import read_schedule, schedule_text, steps_in, written
    from p2smt.report.schedules.schedule_data import converted_data
    from p2smt.units import counted

    target = _target(out, output)
    text = schedule_text(source)
    if text is None:
        asked.refuse_for_plan()
        _export(source, target, request, group, algorithm, force=force, shown=shown)
        return 0
    _refuse(request, group, algorithm)
    o.check_kept(target, source)
    schedule = read_schedule(text, source, asked.reading())
    made = written(schedule, target, force=force)
    write_atomically(target, made)
    lost = _note_loss(text)
    count = steps_in(made, target, schedule)
    steps, ranks = counted(count, "step"), counted(schedule.ranks, "rank")
    tell(
        shown.json,
        lambda: converted_data([(target, count, schedule.ranks, None)], lost=lost),
        lambda: [f"{steps} of {ranks} written to {target}"],
    )
    return 0


def _target(out: Text, output: Text) -> str:
    """Where to write, which is said once."""
    from p2smt.errors import InputError

    if out is not None and output is not None:
        raise InputError("OUT and -o", "both say where to write", "drop one of them")
    if (found := out or output) is None:
        raise InputError("convert", "does not say where to write", "give OUT, or -o FILE")
    return found


def _export(
    source: str,
    target: str,
    request: str | None,
    group: str | None,
    algorithm: str | None,
    *,
    force: bool,
    shown: o.ShownOptions,
) -> None:
    """The groups of a request of a plan, what they are, and what they take."""
    from p2smt.cli import given
    from p2smt.cli.output import tell
    from p2smt.errors import InputError
    from p2smt.files.write import same_file, write_all_atomically
    from p2smt.interop.plan_export import export_plan
    from p2smt.plans.file import read_plan
    from p2smt.report.schedules.schedule_data import converted_data, export_lines
    from p2smt.report.screens.list_screens import converted_screen

    number = 1 if request is None else given.count_of(request, "request")
    chosen = None if group is None else given.count_of(group, "group")
    plan, name = read_plan(source), f"plan {source}"
    made = export_plan(plan, number - 1, target, chosen, algorithm, name, force=force)
    if any(same_file(file.path, source) for file in made.files):
        raise InputError(target, "is the plan itself", "name another file: the plan is kept")
    write_all_atomically({file.path: file.text for file in made.files})
    rows = [(f.path, f.steps, f.content.schedule.ranks, f.group) for f in made.files]
    lines = [*export_lines(made)]
    tell(
        shown.json,
        lambda: converted_data(rows, made.plan_s),
        lambda: lines if shown.details else converted_screen(lines),
    )


def _note_loss(text: str) -> list[str]:
    """Says what of a file is not about what it computes, and not kept."""
    lost = [name for name in ("minBytes", "maxBytes", "min_message_size") if name in text]
    if lost:
        typer.echo(f"not kept: the sizes it is meant for ({', '.join(lost)})", err=True)
    return lost


def _refuse(request: str | None, group: str | None, algorithm: str | None) -> None:
    from p2smt.errors import InputError

    if any(option is not None for option in (request, group, algorithm)):
        raise InputError("--request, --group and --algorithm", "are for plans", "drop them")
