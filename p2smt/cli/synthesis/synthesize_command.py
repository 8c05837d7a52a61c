"""`p2smt synthesize`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli.schedules import schedule_options as so
from p2smt.cli.topology import fabric_command as fc


def synthesize(
    fabric: Annotated[
        str | None,
        typer.Option(
            "--fabric",
            metavar="NAME[:N]|FILE",
            help="Such as dgx1, dgx1:2, ring:8, torus:4x4, cube:3, mesh:4, or a file.",
        ),
    ] = None,
    collective: Annotated[
        str | None,
        typer.Option(
            "--collective",
            metavar="NAME",
            help="all-gather, all-reduce, all-to-all, broadcast, gather, reduce, reduce-scatter "
            "or scatter.",
        ),
    ] = None,
    steps: Annotated[
        str | None, typer.Option("--steps", metavar="S", help="Steps, one after the other.")
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option(
            "--rounds",
            metavar="R",
            help="Rounds of all steps; in a round a link of bandwidth 1 carries a chunk.",
        ),
    ] = None,
    chunks: Annotated[
        str | None,
        typer.Option(
            "--chunks",
            metavar="C",
            help="Chunks per rank (all-gather, reduce-scatter), per pair (all-to-all, scatter, "
            "gather), or in all (all-reduce, broadcast, reduce).",
        ),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option("--root", metavar="RANK", help="Of a broadcast, scatter ..; default: 0."),
    ] = None,
    pareto: Annotated[
        bool,
        typer.Option(
            "--pareto", help="For every number of steps the fewest rounds a chunk, with proofs."
        ),
    ] = False,
    max_steps: Annotated[
        str | None,
        typer.Option(
            "--max-steps",
            metavar="N",
            help="With --pareto: the most steps; default: 4 more than the fewest.",
        ),
    ] = None,
    max_chunks: Annotated[
        str | None,
        typer.Option(
            "--max-chunks", metavar="N", help="With --pareto: the most chunks; default: 24 a rank."
        ),
    ] = None,
    symmetry: Annotated[
        str,
        typer.Option(
            "--symmetry",
            metavar="auto|none",
            help="Try schedules with symmetries first, or search without.",
        ),
    ] = "auto",
    messages: Annotated[
        str | None,
        typer.Option(
            "--messages",
            metavar="K",
            help="Of an all-reduce: of a chunk over an edge in a step, at most; default: 1.",
        ),
    ] = None,
    unit: fc.UnitOption = None,
    link_bandwidth: fc.LinkBandwidthOption = None,
    solver: o.SolverOption = "cpsat",
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    workers: o.WorkersOption = "1",
    processes: o.ProcessesOption = None,
    engine: o.EngineOption = None,
    scheduler: o.SchedulerOption = None,
    journal: o.JournalOption = None,
    budget: o.BudgetOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the schedule: .xml (MSCCL), .json (MSCCL++) or .yaml; with --pareto one "
            "file a point, such as algo-2-3-2.xml.",
        ),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(
            "--certificate", metavar="FILE", help="Write the proof of the bound, for verify."
        ),
    ] = None,
    svg: Annotated[
        str | None, typer.Option("--svg", metavar="FILE", help="Draw ranks, steps and messages.")
    ] = None,
    force: so.ForceOption = False,
    json: o.JsonOption = False,
) -> int:
    """Which rank sends which chunk over which link when: a schedule, or a proof that there is none.

    Every schedule is checked in every interleaving.  Exit codes: 0 a schedule (with --pareto: every
    point proved); 4 none, by a bound or by a complete search; 3 none with symmetries, unknown, or
    an open gap.  Parts (--processes, --journal ..) are those of the search with --symmetry none.
    """
    from p2smt.cli import given
    from p2smt.cli.spread_options import SpreadTexts
    from p2smt.cli.synthesis import given_question as q
    from p2smt.cli.synthesis.show_unmade import show_unmade
    from p2smt.cli.synthesis.written_files import FileTexts
    from p2smt.errors import OutOfTimeError
    from p2smt.result import StopWatch
    from p2smt.solvers.questions import solver_of

    files = FileTexts(output, certificate, svg, force)
    limits = given.limits_of(time_limit, seed, workers)
    watch = StopWatch.start(limits)  # a large fabric takes seconds to make
    texts = q.SettingTexts(fabric, collective, root, symmetry, messages, unit, link_bandwidth)
    asked = q.SizeTexts(steps, rounds, chunks, max_steps, max_chunks)
    texts.named_collective()
    asked.check(pareto=pareto)
    parts = SpreadTexts(processes, engine, scheduler, journal, budget)
    parts.check_apart(output, certificate, svg)
    q.check_parts(parts, symmetry, pareto=pareto)
    try:
        setting = q.setting_of(texts, watch)
    except OutOfTimeError:
        return show_unmade(texts, None if pareto else asked.size(), watch.elapsed_s(), json)
    files.check(setting.collective, setting.root)
    limits = watch.left()
    if pareto:
        from p2smt.cli.synthesis.show_frontier import show_frontier

        return show_frontier(setting, asked, limits, solver_of(solver), files, json)
    from p2smt.cli.synthesis.show_synthesis import show_synthesis

    return show_synthesis(setting, asked.size(), limits, solver_of(solver), files, parts, json)
