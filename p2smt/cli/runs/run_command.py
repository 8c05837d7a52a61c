"""`p2smt run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from p2smt.cli import options as o
from p2smt.cli.schedules import schedule_options as so

if TYPE_CHECKING:
    from p2smt.runtime.arrays.rank_steps import ArrayJob
    from p2smt.runtime.payload import RunOptions
    from p2smt.runtime.ranks.run_schedule import ScheduleResult
    from p2smt.runtime.schedules.job import ScheduleJob
    from p2smt.runtime.summary import RunResult
    from p2smt.runtime.work import Work


def run(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A plan written by solve -o or redistribute -o, or a schedule (see verify).",
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="gloo, nccl, or reference (numpy, one process).")
    ] = "gloo",
    ranks: Annotated[
        str | None, typer.Option(metavar="N", help="Ranks to start; must be those of FILE.")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="float32 (the default), float16, bfloat16 or int64."),
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Instead of the sizes in the plan.")
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option(metavar="M", help="Chunks, instead of those in the plan.")
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            "-t",
            metavar="NAME[:N]|FILE",
            help="Without a file: where to run.  With a plan: links to predict times from.",
        ),
    ] = None,
    axes: o.AxesOption = None,
    placement: o.PlacementOption = None,
    reduce: o.ReduceOption = None,
    reduce_scatter: o.ReduceScatterOption = None,
    all_gather: o.AllGatherOption = None,
    all_to_all: o.AllToAllOption = None,
    send: o.SendOption = None,
    kind: o.KindOption = None,
    program: o.ProgramsOption = None,
    warmup: Annotated[str, typer.Option(metavar="N", help="Untimed repetitions.")] = "1",
    repeat: Annotated[str, typer.Option(metavar="N", help="Timed repetitions.")] = "5",
    time_limit: Annotated[
        str, typer.Option(metavar="TIME", help="For the whole run, such as 30 or 30s.")
    ] = "600",
    port: Annotated[
        str, typer.Option(metavar="N", help="Port that the ranks meet at; 0: any.")
    ] = "0",
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="cpu or cuda; default: the backend's.")
    ] = None,
    ranks_per_gpu: Annotated[
        str, typer.Option(metavar="N", help="Above 1: checks results, times mean nothing.")
    ] = "1",
    seed: Annotated[str, typer.Option(metavar="N", help="Of the payloads.")] = "0",
    fifo_depth: so.DepthOption = None,
    collective: so.CollectiveOption = None,
    root: so.RootOption = None,
    out_of_place: so.OutOfPlaceOption = False,
    sizes: so.SizesOption = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Run a schedule whatever the checker says.")
    ] = False,
    json: o.JsonOption = False,
) -> int:
    """Run a plan, a schedule or a redistribution on real ranks: check the results, time it.

    Without a file: requests on a placement, by --topology, --axes, --placement, --reduce and so on,
    with a --program for each, as for `cost`; they run one after the other.  Under torchrun or srun
    the ranks that exist are used.
    """
    from p2smt.cli.runs import run_options
    from p2smt.cli.scene_options import RequestTexts
    from p2smt.interop.schedule_files import schedule_text
    from p2smt.resharding.plan_file import is_redistribution

    asked = so.ScheduleOptions(fifo_depth, collective, root, out_of_place, sizes=tuple(sizes or ()))
    texts = RequestTexts(reduce, reduce_scatter, all_gather, all_to_all, send, kind)
    scene = run_options.SceneTexts(topology, axes, placement, texts, tuple(program or ()))
    redistributes = file is not None and is_redistribution(file)
    text = None if file is None or redistributes else schedule_text(file)
    work: Work
    if file is not None and redistributes:
        run_options.refuse_for_plan(asked, unverified)
        run_options.refuse_for_arrays(payload, pipeline, dtype, scene)
        work = run_options.array_job_of(file)
    elif file is None or text is None:
        run_options.refuse_for_plan(asked, unverified)
        work = run_options.job_of(file, payload, pipeline, scene)
    else:
        run_options.refuse_for_schedule(pipeline, scene)
        work = run_options.schedule_job_of(text, file, payload, asked)
    options = run_options.options_of(
        backend, device, dtype or "float32", warmup, repeat, time_limit, seed, ranks_per_gpu
    )
    return _run(work, options, ranks, port, unverified, json)


def _run(
    work: Work, options: RunOptions, ranks: str | None, port: str, unverified: bool, as_json: bool
) -> int:
    from p2smt.cli import given
    from p2smt.cli.runs import run_options
    from p2smt.runtime.arrays.rank_steps import ArrayJob
    from p2smt.runtime.job import Job
    from p2smt.runtime.ranks.run import run_job
    from p2smt.runtime.schedules.job import ScheduleJob

    if ranks is not None:
        run_options.check_started(given.count_of(ranks, "ranks"), work.ranks)
    number = given.count_of(port, "port", 65_535, least=0)
    match work:
        case Job():
            result = run_job(work, options, port=number)
            return 0 if result is None else _finish(result, options, as_json)
        case ScheduleJob():
            return _run_schedule(work, options, number, unverified, as_json)
        case ArrayJob():
            return _run_arrays(work, options, number, as_json)
        case _:
            assert_never(work)


def _finish(result: RunResult, options: RunOptions, as_json: bool) -> int:
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.runs import run_data, run_tables
    from p2smt.report.tables import show

    if as_json:
        print_json(run_data(result, options))
    else:
        show(*run_tables(result, options))
    return OK if result.verified else REFUTED


def _run_schedule(
    job: ScheduleJob, options: RunOptions, port: int, unverified: bool, as_json: bool
) -> int:
    """Run a schedule and show what came of it."""
    from p2smt.runtime.ranks.run_schedule import run_schedule

    result = run_schedule(job, options, port=port, unverified=unverified)
    return 0 if result is None else _finish_schedule(result, options, as_json)


def _finish_schedule(result: ScheduleResult, options: RunOptions, as_json: bool) -> int:
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.runs import schedule_run_data, schedule_run_lines
    from p2smt.report.text import one_line

    if as_json:
        print_json(schedule_run_data(result, options))
    else:
        for line in schedule_run_lines(result, options):
            typer.echo(one_line(line, 2000))
    return OK if result.verified else REFUTED


def _run_arrays(job: ArrayJob, options: RunOptions, port: int, as_json: bool) -> int:
    """Run a redistribution and show what came of it."""
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.runs import array_run_data, array_run_lines
    from p2smt.report.text import one_line
    from p2smt.runtime.ranks.run_arrays import run_arrays

    result = run_arrays(job, options, port=port)
    if result is None:
        return OK
    if as_json:
        print_json(array_run_data(result, options))
    else:
        for line in array_run_lines(result, options):
            typer.echo(one_line(line, 2000))
    return OK if result.verified else REFUTED
