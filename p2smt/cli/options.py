"""Options that several commands share, and what they mean."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from p2smt.placement import ParallelismAxis
    from p2smt.problem import AxisRule, FixedEntry
    from p2smt.request import Request
    from p2smt.result import SearchLimits, Status
    from p2smt.topology import Topology

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


def topology_of(spec: str | None) -> Topology:
    """The topology of --topology, which must be given."""
    from p2smt.errors import InputError
    from p2smt.topology_file import load_topology

    if spec is None:
        raise InputError("topology", "is missing", "give --topology azure-ndv4:4 or a YAML file")
    return load_topology(spec)


def levels_of(spec: str | None, levels: str | None) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and sizes of the levels of --topology, or of --levels (named l1, l2, ..)."""
    from p2smt.errors import InputError

    if (spec is None) == (levels is None):
        raise InputError("levels", "give either --topology or --levels")
    if levels is None:
        topology = topology_of(spec)
        return topology.names, topology.sizes
    sizes = sizes_of(levels, "levels")
    return tuple(f"l{n}" for n in range(1, len(sizes) + 1)), sizes


def sizes_of(text: str | None, what: str) -> tuple[int, ...]:
    """Sizes such as ``4,16``."""
    from p2smt.units import parse_count

    return tuple(
        parse_count(part, f"{what} {str(text)[:60]!r}: size") for part in str(text).split(",")
    )


def axes_of(text: str | None) -> tuple[ParallelismAxis, ...]:
    """Axes by name, or sizes that get the names a1, a2, .."""
    from p2smt.errors import InputError
    from p2smt.placement import ParallelismAxis
    from p2smt.request import check_axes, parse_axes

    if text is None:
        raise InputError("axes", "are missing", "give --axes dp=8,tp=4")
    if "=" in text:
        return parse_axes(text)
    sizes = sizes_of(text, "axes")
    return check_axes([ParallelismAxis(f"a{n}", size) for n, size in enumerate(sizes, start=1)])


def rules_of(
    levels: Sequence[str],
    axes: Sequence[ParallelismAxis],
    require: list[str] | None,
    forbid: list[str] | None,
    fix: list[str] | None,
) -> tuple[AxisRule | FixedEntry, ...]:
    """The side constraints on the matrix."""
    from p2smt.rules import parse_fix, parse_rule

    names = [axis.name for axis in axes]
    found: list[AxisRule | FixedEntry] = [
        parse_rule(text, require=True, axis_names=names, level_names=levels)
        for text in require or []
    ]
    found += [
        parse_rule(text, require=False, axis_names=names, level_names=levels)
        for text in forbid or []
    ]
    for text in fix or []:
        found += parse_fix(text, names, levels)
    return tuple(found)


def limits_of(time_limit: str | None, seed: int, workers: int) -> SearchLimits:
    """The search limits of --time-limit, --seed and --workers."""
    from p2smt.errors import InputError
    from p2smt.result import SearchLimits
    from p2smt.units import parse_time

    seconds = None
    if time_limit is not None:
        plain = time_limit.strip().replace(".", "", 1).isascii()
        digits = time_limit.strip().replace(".", "", 1).isdigit()
        seconds = parse_time(time_limit + "s" if plain and digits else time_limit, "time limit")
    if not 0 <= seed < 2**31 or not 1 <= workers <= 256:
        raise InputError(
            f"seed {seed}, workers {workers}", "seed is 0 to 2^31 - 1, workers 1 to 256"
        )
    return SearchLimits(seconds, None, seed, workers)


def requests_of(**texts: list[str] | None) -> tuple[Request, ...]:
    """Requests by kind, in the order of the kinds, then as given."""
    from p2smt.collective import RequestKind
    from p2smt.request import parse_request

    kinds = {
        "reduce": RequestKind.ALL_REDUCE,
        "reduce_scatter": RequestKind.REDUCE_SCATTER,
        "all_gather": RequestKind.ALL_GATHER,
        "all_to_all": RequestKind.ALL_TO_ALL,
        "send": RequestKind.SEND,
    }
    return tuple(
        parse_request(text, kinds[name]) for name, given in texts.items() for text in given or []
    )


def json_of(text: str, what: str) -> object:
    """A JSON value given on the command line."""
    from p2smt.errors import InputError

    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{what} {text[:60]!r}", "is not JSON", "write [[4,1],[1,16]]") from None
    return value


def print_json(data: dict[str, Any]) -> None:
    """Print exactly one JSON object."""
    typer.echo(json.dumps(_finite({"schema_version": 1, **data})))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def exit_code(status: Status) -> int:
    """The exit code of a status."""
    from p2smt import cli
    from p2smt.result import Status

    match status:
        case Status.OPTIMAL | Status.COMPLETE:
            return cli.OK
        case Status.INFEASIBLE:
            return cli.INFEASIBLE
        case Status.FEASIBLE | Status.TRUNCATED | Status.UNKNOWN:
            return cli.NOT_SETTLED
