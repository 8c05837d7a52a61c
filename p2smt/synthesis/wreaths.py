"""Groups far too large to list, by generators alone: wreath products of nodes that are alike.

Such a group moves the ranks of every node apart from those of the others, and nodes as wholes: with
a group N of one node and m nodes it has |N|^m m! elements, or |N|^m m where nodes are only turned
round.  What symmetries take to each other, and so a model, follows from generators: maps of the
first node, the shift of all nodes, the swap of two.  Each is checked where it moves chunks.

They are for chunks that go from one rank to one other, as in an all-to-all.  Where N but for the
identity leaves no rank, such a chunk is left by those maps alone that move nodes at neither of its
ends, where its way need not go.  Chunks for all ranks are another thing: the maps of a third node
leave one as well, so when it comes to a rank of that node, it comes to all that N takes this rank
to, at once and from outside: as many copies over the network as the orbit has ranks, where one
would do.  A sum leaves the node in as many parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial

from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.symmetries import FabricSymmetry, check_symmetry, symmetry_of_ranks
from p2smt.problems.schedule import ChunkRoute, ScheduleSymmetry
from p2smt.result import StopWatch
from p2smt.synthesis.group_order import by_order, route_image, useful_tables
from p2smt.synthesis.subgroups import SymmetryGroup

WREATHED = ("alltoall",)
"""The collectives whose chunks go from one rank to one other, each rank's to each."""


def wreath_products(fabric: Fabric, watch: StopWatch | None = None) -> tuple[SymmetryGroup, ...]:
    """The groups, the largest of a node first; their orders are those of the maps of ranks.

    A node is so many ranks in a row, the fewest that move while all others stay, and that a shift
    of all ranks takes to each other.  Empty: there are none, or the time of ``watch`` was over.
    """
    sizes = _parts(fabric.ranks)
    return next((found for n in sizes if (found := _of_nodes(fabric, n, watch))), ())


def _parts(size: int) -> list[int]:
    return [n for n in range(2, size // 2 + 1) if size % n == 0]


def _of_nodes(fabric: Fabric, size: int, watch: StopWatch | None) -> tuple[SymmetryGroup, ...]:
    """Those of nodes of so many ranks."""
    nodes, turn = fabric.ranks // size, _turned(fabric, fabric.ranks, size)
    if turn is None or (watch is not None and watch.expired()):
        return ()
    found = []
    for inner in _of_first(fabric, size, watch):
        for tops, order in _tops(fabric, turn, nodes, size):
            generators = (*inner.generators, *tops)
            found.append(SymmetryGroup(generators, inner.order**nodes * order))
    return tuple(found)


def _of_first(fabric: Fabric, size: int, watch: StopWatch | None) -> Iterator[SymmetryGroup]:
    """Groups that leave all but the first so many ranks: wreath products of parts, then others."""
    yield from _of_parts(fabric, size, watch)
    others = range(size, fabric.ranks)
    tables = useful_tables(fabric, others, reversing=False, watch=watch)
    for (table, group), *_ in by_order(tables, others):
        yield table.named(group)


def _of_parts(fabric: Fabric, size: int, watch: StopWatch | None) -> list[SymmetryGroup]:
    """Wreath products of parts of the first so many ranks; none where these can shift by one."""
    if _turned(fabric, size, 1) is not None:
        return []
    for part in _parts(size):
        if (turn := _turned(fabric, size, part)) is not None:
            times, inner = size // part, list(_of_first(fabric, part, watch))
            if inner:
                return [
                    SymmetryGroup((*one.generators, turn), one.order**times * times)
                    for one in inner
                ]
    return []


def _turned(fabric: Fabric, size: int, step: int) -> FabricSymmetry | None:
    """The first so many ranks shifted round by ``step``; None: that is no symmetry."""
    image = [(rank + step) % size for rank in range(size)]
    return symmetry_of_ranks(fabric, [*image, *range(size, fabric.ranks)])


def _tops(
    fabric: Fabric, turn: FabricSymmetry, nodes: int, size: int
) -> Iterator[tuple[tuple[FabricSymmetry, ...], int]]:
    """All permutations of the nodes, if there are more than shifts; then the shifts."""
    every = range(fabric.ranks)
    two = (*every[size : 2 * size], *every[:size], *every[2 * size :])
    if nodes > 2 and (swap := symmetry_of_ranks(fabric, two)) is not None:
        yield (turn, swap), factorial(nodes)
    yield (turn,), nodes


def moved_by_routes(
    fabric: Fabric, generators: Sequence[FabricSymmetry], chunks: Sequence[ChunkRoute]
) -> tuple[ScheduleSymmetry, ...]:
    """Chunks move as their roots and goals do; of several of one route each to the same of another.

    ``chunks``: those of a route stand together, as many of each.

    Raises:
        InputError: a map is no symmetry of the fabric, or takes a chunk to none of these.
    """
    routes = tuple(dict.fromkeys(chunks))
    copies, place = len(chunks) // len(routes), {route: n for n, route in enumerate(routes)}
    found = []
    for one in generators:
        check_symmetry(fabric, one)
        images = [place.get(route_image(route, one)) for route in routes]
        known = [image for image in images if image is not None]
        if len(known) < len(images) or one.reverses:
            raise InputError("a symmetry", "takes a chunk to none of the collective")
        moved = tuple([image * copies + copy for image in known for copy in range(copies)])
        found.append(ScheduleSymmetry(one.ranks, one.edges, moved))
    return tuple(found)
