"""Where programs run: plain factors, or a placement's axes on a topology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.programs.program import Hierarchy

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.cost.scene import Scene
    from p2smt.parallelism.placement import ParallelismAxis, Placement


@dataclass(frozen=True)
class Where:
    """A hierarchy; with a topology and a payload also a scene that gives programs a time."""

    hierarchy: Hierarchy
    scene: Scene | None = None
    payload_bytes: int = 0


@dataclass(frozen=True)
class PlacedReduction:
    """Reduction axes of a placement on a topology (``names`` as given); payload 0: no size."""

    placement: Placement
    axes: tuple[int, ...]
    names: str
    scene: Scene
    payload_bytes: int


def program_kind(text: str | None) -> RequestKind:
    """A request kind that has programs; all-reduce where none is given."""
    known = {kind.value: kind for kind in RequestKind if kind.has_programs}
    if text is None:
        return RequestKind.ALL_REDUCE
    if text not in known:
        raise InputError(f"kind {text[:40]!r}", f"must be one of {', '.join(known)}")
    return known[text]


def placement_of(
    text: str | None, topology: Topology, axes: tuple[ParallelismAxis, ...]
) -> Placement:
    """The matrix of --placement, its sizes checked."""
    from p2smt.parallelism.placement import Placement

    if text is None:
        raise InputError("placement", "is missing", "give --placement [[4,1],[1,16]]")
    rows = [row for row in given.rank_order_of(text) if isinstance(row, list)]
    if not rows:
        raise InputError(f"placement {text[:60]!r}", "is not a matrix", "write [[4,1],[1,16]]")
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
    if (topology is None) == (factors is None):
        raise InputError("factors", "give either --factors, or --topology with a placement")
    if factors is not None:
        if axes is not None or placement is not None or reduce is not None:
            raise InputError("--factors", "stands alone", "drop --axes, --placement and --reduce")
        return Where(Hierarchy.plain(given.sizes_of(factors, "factors")))
    found = placed_reduction(topology, axes, placement, reduce)
    if not found.payload_bytes:
        return Where(found.scene.hierarchy)
    return Where(found.scene.hierarchy, found.scene, found.payload_bytes)


def placed_reduction(
    topology: str | None, axes: str | None, placement: str | None, reduce: str | None
) -> PlacedReduction:
    """Where --reduce AXES[=SIZE] runs."""
    from p2smt.cost.scene import Scene
    from p2smt.units import parse_bytes

    cluster, chosen = given.topology_of(topology), given.axes_of(axes)
    if reduce is None:
        raise InputError("reduce", "is missing", "name the reduced axes, such as --reduce dp")
    names, equals, size = reduce.partition("=")
    indices = _indices(names, chosen)
    matrix = placement_of(placement, cluster, chosen)
    payload = parse_bytes(size.strip(), "size in --reduce") if equals else 0
    scene = Scene.of(cluster, matrix, indices)
    return PlacedReduction(matrix, tuple(indices), names, scene, payload)


def _indices(text: str, axes: tuple[ParallelismAxis, ...]) -> list[int]:
    known = [axis.name for axis in axes]
    names = [name.strip() for name in text.split("+")]
    for name in names:
        if name not in known:
            raise InputError(
                f"axis {name[:40]!r} in --reduce", f"is not among the axes {', '.join(known)}"
            )
        if names.count(name) > 1:
            raise InputError(f"--reduce {text[:60]!r}", f"names the axis {name} twice")
    return sorted(known.index(name) for name in names)
