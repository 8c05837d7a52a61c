"""`p2smt plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli.workload import workload_options as w

if TYPE_CHECKING:
    from p2smt.api.planning import Planned


def plan(
    model: w.ModelOption = None,
    topology: o.TopologyOption = None,
    use: o.UseOption = None,
    global_batch: w.BatchOption = None,
    seq: w.SequenceOption = None,
    efficiency: w.EfficiencyOption = None,
    memory: w.MemoryOption = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix", metavar="KEY=N", help="Such as tp=4 or recompute=none; or pp=rack:2 (matrix)."
        ),
    ] = None,
    require: o.RequireOption = None,
    forbid: o.ForbidOption = None,
    within: Annotated[
        str,
        typer.Option(metavar="P%", help="Count strategies at most so much slower."),
    ] = "5%",
    top: Annotated[str, typer.Option(metavar="N", help="How many strategies to rank.")] = "3",
    prices: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What requests cost: collectives (then the best gets programs), or programs.",
        ),
    ] = "collectives",
    launcher: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only what it can run: megatron, torchtitan or deepspeed."
        ),
    ] = None,
    max_tp: Annotated[
        str | None,
        typer.Option("--max-tp", metavar="N", help="Largest tp; default: a switch domain."),
    ] = None,
    max_pp: Annotated[
        str | None, typer.Option("--max-pp", metavar="N", help="Largest pp; default: the layers.")
    ] = None,
    max_cp: Annotated[str | None, typer.Option("--max-cp", metavar="N", help="Largest cp.")] = None,
    max_vpp: Annotated[
        str | None, typer.Option("--max-vpp", metavar="N", help="Most chunks of a stage.")
    ] = None,
    max_mbs: Annotated[
        str | None, typer.Option("--max-mbs", metavar="N", help="Largest micro-batch.")
    ] = None,
    recompute: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Some of none, selective, full; default: all."),
    ] = None,
    zero: Annotated[
        str | None, typer.Option(metavar="N,..", help="Stages of ZeRO; default: 0,1,2,3.")
    ] = None,
    flash: Annotated[str, typer.Option(metavar="0|1", help="Fused attention.")] = "1",
    dtype: Annotated[str, typer.Option(metavar="NAME", help="bf16 or fp16.")] = "bf16",
    library: o.LibraryOption = None,
    nominal: o.NominalOption = False,
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    workers: o.WorkersOption = "1",
    processes: o.ProcessesOption = None,
    engine: o.EngineOption = None,
    scheduler: o.SchedulerOption = None,
    journal: o.JournalOption = None,
    budget: o.BudgetOption = None,
    svg: w.SvgOption = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the plan here, as JSON."),
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """The fastest strategy and placement to train a model, proved in the model of cost."""
    from p2smt.api.planning import plan as planned
    from p2smt.cli import given, restrictions
    from p2smt.cli.spread_options import SpreadTexts, spread_over
    from p2smt.cli.workload import plan_question as q
    from p2smt.errors import InputError
    from p2smt.files.write import check_svg_name

    texts = w.WorkloadTexts(model, global_batch, seq, efficiency, memory)
    space = q.SpaceTexts(max_tp, max_pp, max_cp, max_vpp, max_mbs, recompute, zero)
    trained, batch = texts.trained()
    cluster = given.topology_of(topology, library, nominal=nominal, use=use)
    for path in (output, svg):
        restrictions.writable(path)
    if output is not None:
        from p2smt.plans.file import check_plan_name

        check_plan_name(output)
        if cluster.devices == 1:
            rule = "has no plan file: a plan has requests, and one device sends nothing"
            raise InputError(f"a training on one device of {cluster.name}", rule, "drop -o")
    if svg is not None:
        check_svg_name(svg)
    question = q.question_of(
        trained,
        batch,
        cluster,
        texts,
        space,
        q.RuleTexts(fix or [], require or [], forbid or []),
        q.WishTexts(within, top, prices, launcher, flash, dtype),
    )
    limits = given.limits_of(time_limit, seed, workers)
    parts = SpreadTexts(processes, engine, scheduler, journal, budget)
    parts.check_apart(output, svg)
    with spread_over(parts) as spread:
        found = planned(question, limits, spread)
    return _finish(found, output, svg, as_json=json)


def _finish(found: Planned, output: str | None, svg: str | None, *, as_json: bool) -> int:
    """Write the files first: what is shown may go to a pipe that nobody reads any more."""
    from p2smt.cli.codes import INTERRUPTED, exit_code
    from p2smt.cli.output import print_json
    from p2smt.report.tables import show
    from p2smt.report.training.estimate_data import planned_data
    from p2smt.report.training.plan_tables import plan_tables

    written = _write(found, output, svg)
    if as_json:
        print_json(planned_data(found))
    else:
        show(plan_tables(found))
        for line in written:
            typer.echo(line)
    return INTERRUPTED if found.interrupted else exit_code(found.answer.status)


def _write(found: Planned, output: str | None, svg: str | None) -> list[str]:
    """Write plan and picture; returns what to say of it."""
    from p2smt.report.text import printable

    lines: list[str] = []
    if found.plan is None:
        return lines
    if output is not None:
        from p2smt.api.planning import write_training_plan

        write_training_plan(found.plan, output)
        lines.append(f"plan written to {printable(output)}")
    if svg is not None:
        from p2smt.report.training.picture import write_run_picture

        write_run_picture(found.top, svg)
        lines.append(f"picture written to {printable(svg)}")
    return ["", *lines] if lines else []
