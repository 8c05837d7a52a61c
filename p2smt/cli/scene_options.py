"""Where programs run: plain factors, or a placement's axes on a topology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.cli import options as o
from p2smt.collective import RequestKind
from p2smt.errors import InputError
from p2smt.program import Hierarchy

if TYPE_CHECKING:
    from p2smt.placement import ParallelismAxis, Placement
    from p2smt.pricing import Scene
    from p2smt.topology import Topology


@dataclass(frozen=True)
class Where:
    """A hierarchy; with a topology and a payload also a scene that gives programs a time."""

    hierarchy: Hierarchy
    scene: Scene | None = None
    payload_bytes: int = 0


def program_kind(text: str) -> RequestKind:
    """A request kind that has programs."""
    known = {kind.value: kind for kind in RequestKind if kind.has_programs}
    if text not in known:
        raise InputError(f"kind {text[:40]!r}", f"must be one of {', '.join(known)}")
    return known[text]


def placement_of(
    text: str | None, topology: Topology, axes: tuple[ParallelismAxis, ...]
) -> Placement:
    """The matrix of --placement, its sizes checked."""
    from p2smt.placement import Placement

    if text is None:
        raise InputError("placement", "is missing", "give --placement [[4,1],[1,16]]")
    rows = o.json_of(text, "placement")
    good = isinstance(rows, list) and all(
        isinstance(row, list) and all(type(entry) is int for entry in row) for row in rows
    )
    if not isinstance(rows, list) or not good:
        raise InputError(f"placement {text[:60]}", "is not a matrix of whole numbers")
    found = Placement(tuple(tuple(row) for row in rows))
    found.check(topology.sizes, [axis.size for axis in axes])
    return found


def where(
    topology: str | None,
    factors: str | None,
    axes: str | None,
    placement: str | None,
    reduce: str | None,
) -> Where:
    """The place that the options describe."""
    from p2smt.pricing import Scene
    from p2smt.units import parse_bytes

    if (topology is None) == (factors is None):
        raise InputError("factors", "give either --factors, or --topology with a placement")
    if factors is not None:
        if axes is not None or placement is not None or reduce is not None:
            raise InputError("--factors", "stands alone", "drop --axes, --placement and --reduce")
        return Where(Hierarchy.plain(o.sizes_of(factors, "factors")))
    if reduce is None:
        raise InputError("reduce", "is missing", "name the reduced axes, such as --reduce dp")
    cluster, chosen = o.topology_of(topology), o.axes_of(axes)
    names, equals, size = reduce.partition("=")
    indices = _indices(names, chosen)
    scene = Scene.of(cluster, placement_of(placement, cluster, chosen), indices)
    if not equals:
        return Where(scene.hierarchy)
    return Where(scene.hierarchy, scene, parse_bytes(size, "size in --reduce"))


def _indices(text: str, axes: tuple[ParallelismAxis, ...]) -> list[int]:
    known = [axis.name for axis in axes]
    for name in text.split("+"):
        if name not in known:
            raise InputError(
                f"axis {name[:40]!r} in --reduce", f"is not among the axes {', '.join(known)}"
            )
    return sorted({known.index(name) for name in text.split("+")})
