"""Options that several commands share (what they mean: :mod:`p2smt.cli.given`)."""

from __future__ import annotations

from typing import Annotated

import typer

TopologyOption = Annotated[
    str | None,
    typer.Option("--topology", "-t", help="Preset, preset:NODES, or a YAML file."),
]
LevelsOption = Annotated[
    str | None, typer.Option("--levels", help="Level sizes such as 4,16, outermost first.")
]
AxesOption = Annotated[
    str | None, typer.Option("--axes", "-a", help="Axes such as dp=8,tp=4 (or sizes: 8,4).")
]
RequireOption = Annotated[
    list[str] | None, typer.Option("--require", help='Rule such as "tp within node".')
]
ForbidOption = Annotated[
    list[str] | None, typer.Option("--forbid", help='Rule such as "dp across rack".')
]
FixOption = Annotated[
    list[str] | None, typer.Option("--fix", help='Matrix entry such as "pp=rack:2".')
]
KindOption = Annotated[
    str | None,
    typer.Option("--kind", help="all-reduce (default), reduce-scatter or all-gather."),
]
LengthOption = Annotated[int, typer.Option("--length", help="Most instructions of a program.")]
FormOption = Annotated[
    list[str] | None, typer.Option("--forbid-form", help="inside, parallel or master.")
]
StepsOption = Annotated[
    list[str] | None,
    typer.Option("--max-steps-at", help="Such as node=1: at most 1 step crosses nodes."),
]
AlgorithmOption = Annotated[
    str | None, typer.Option("--algorithm", help="Such as ring or ring,tree; default: auto.")
]
SolverOption = Annotated[str, typer.Option("--solver", help="cpsat or z3.")]
TimeOption = Annotated[
    str | None, typer.Option("--time-limit", help="Wall time such as 30 or 30s.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Solver seed.")]
WorkersOption = Annotated[int, typer.Option("--workers", help="Solver threads.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
PlacementOption = Annotated[
    str | None, typer.Option("--placement", help="Matrix such as [[4,1],[1,16]].")
]
