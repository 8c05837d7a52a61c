"""Options that several commands share (what they mean: :mod:`p2smt.cli.given`).

Numbers are read by p2smt itself, so that a bad one is reported like every other bad value.
"""

from __future__ import annotations

from typing import Annotated

import typer

_SIZED = "AXES[=SIZE[*N]]"

TopologyOption = Annotated[
    str | None,
    typer.Option(
        "--topology", "-t", metavar="NAME[:N]|FILE", help="Preset, preset:NODES, or a YAML file."
    ),
]
UseOption = Annotated[
    list[str] | None,
    typer.Option(
        "--use",
        metavar="LEVEL=N",
        help="Only the first N of each entity's: gpu=6 of a node of 8, gpu=64 of a rack of 72.",
    ),
]
HostsOption = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="FILE|LIST",
        help="Hosts that the job got: a file with one (or a host list) a line, or a list such as "
        "n[01-05,09]; default: $SLURM_JOB_NODELIST, else all that the topology names.",
    ),
]
LevelsOption = Annotated[
    str | None,
    typer.Option("--levels", metavar="N,N,..", help="Level sizes such as 4,16, outermost first."),
]
AxesOption = Annotated[
    str | None,
    typer.Option(
        "--axes", "-a", metavar="NAME=N,..", help="Axes such as dp=8,tp=4 (or sizes: 8,4)."
    ),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option("--require", metavar="RULE", help='Rule such as "tp within node".'),
]
ForbidOption = Annotated[
    list[str] | None,
    typer.Option("--forbid", metavar="RULE", help='Rule such as "dp across rack".'),
]
FixOption = Annotated[
    list[str] | None,
    typer.Option("--fix", metavar="AXIS=LEVEL:N", help='Matrix entry such as "pp=rack:2".'),
]
KindOption = Annotated[
    str | None,
    typer.Option(
        "--kind", metavar="KIND", help="all-reduce (default), reduce-scatter or all-gather."
    ),
]
LengthOption = Annotated[
    str, typer.Option("--length", metavar="N", help="Most instructions of a program.")
]
LimitOption = Annotated[
    str | None, typer.Option("--limit", metavar="N", help="Stop after so many.")
]
FormOption = Annotated[
    list[str] | None,
    typer.Option("--forbid-form", metavar="FORM", help="inside, parallel or master."),
]
StepsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--max-steps-at",
        metavar="LEVEL=N",
        help="Such as node=1: at most 1 step of a program crosses nodes.",
    ),
]
AlgorithmOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        metavar="NAMES",
        help="Such as ring or ring,tree: no others run, where these can; best (or auto): the "
        "cheapest; default: the library's choice, without one the cheapest.",
    ),
]
LibraryOption = Annotated[
    str | None,
    typer.Option(
        "--library",
        metavar="NAME|FILE|none",
        help="Communication library such as nccl-2.30, rccl or gloo, instead of the topology's.",
    ),
]
NominalOption = Annotated[
    bool,
    typer.Option("--nominal", help="The links' nominal rates: no library, nothing measured."),
]
PipelineOption = Annotated[
    str | None,
    typer.Option(
        "--pipeline",
        metavar="M|auto",
        help="Chunks in which programs of several steps run, overlapping; default: 1.",
    ),
]
SolverOption = Annotated[str, typer.Option("--solver", metavar="NAME", help="cpsat or z3.")]
TimeOption = Annotated[
    str | None,
    typer.Option("--time-limit", metavar="TIME", help="Wall time such as 30 or 30s."),
]
SeedOption = Annotated[str, typer.Option("--seed", metavar="N", help="Solver seed.")]
WorkersOption = Annotated[str, typer.Option("--workers", metavar="N", help="Solver threads.")]
ProcessesOption = Annotated[
    str | None,
    typer.Option(
        "--processes", metavar="N", help="Search in N processes, each with --workers threads."
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="in-process, processes or dask."),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", help="Of a Dask cluster, such as tcp://10.0.0.1:8786."
    ),
]
JournalOption = Annotated[
    str | None,
    typer.Option("--journal", metavar="FILE", help="Write the search here, and go on from it."),
]
BudgetOption = Annotated[
    str | None,
    typer.Option("--budget", metavar="TIME", help="Cut a part that takes longer, such as 10s."),
]
PlanArgument = Annotated[
    str | None, typer.Argument(metavar="FILE", help="A plan file written by solve -o.")
]
ProgramsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--program", metavar="TEXT", help="Program text, or single; default: single collectives."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
PlacementOption = Annotated[
    str | None,
    typer.Option("--placement", metavar="MATRIX", help="Matrix such as [[4,1],[1,16]]."),
]
ReduceOption = Annotated[
    list[str] | None,
    typer.Option("--reduce", metavar=_SIZED, help="All-reduce, such as dp=1GiB or tp=64MiB*128."),
]
ReduceScatterOption = Annotated[
    list[str] | None,
    typer.Option("--reduce-scatter", metavar=_SIZED, help="Such as dp=1GiB (bytes: the input)."),
]
AllGatherOption = Annotated[
    list[str] | None,
    typer.Option("--all-gather", metavar=_SIZED, help="Such as dp=1GiB (bytes: the output)."),
]
AllToAllOption = Annotated[
    list[str] | None,
    typer.Option(
        "--all-to-all", metavar=_SIZED, help="Such as ep=64MiB (bytes: all a rank sends)."
    ),
]
SendOption = Annotated[
    list[str] | None,
    typer.Option("--send", metavar=_SIZED, help="Such as pp=16MiB, to the next rank."),
]
