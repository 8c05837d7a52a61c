"""A forest of weighted trees with the cuts that none beats: a value, its file, its check.

Ranks and switches are the vertices of a graph.  A rank's data goes along trees that span all ranks:
each tree has a part of it, and each edge of a tree is a way over switches, which copy nothing.
``time`` is what the slowest arc needs if every rank has one unit of data (of an all-reduce: if all
have a vector of as many units as there are ranks).  The check adds fractions; it solves nothing and
shares nothing with what found the trees.

A symmetry moves vertices and keeps arcs.  A tree stands for itself and for all its images, each
with the same part of the weight, so arcs that symmetries make of each other share their loads.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from p2smt.synthesis.certificate import plain
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.certificate.duality import NoProof

FOREST_KIND = "forest"
FOREST_VERSION = 1
MAX_VERTICES = 2**17
END = " (end)"
"""Behind the name of the vertex at the end of a port that several feed."""
MAX_FOREST_BYTES = 2**27

_OWN = BoundedCollective
OUTWARD = (_OWN.ALL_GATHER, _OWN.BROADCAST, _OWN.ALL_REDUCE)
INWARD = (_OWN.REDUCE_SCATTER, _OWN.REDUCE, _OWN.ALL_REDUCE)
"""Whose trees copy from their roots, and whose trees add up towards them."""

NetworkArc = tuple[int, int, Fraction | None]
"""From, to, and what it carries in a second or a round; None: as much as comes."""
Moves = Mapping[int, int]
"""A symmetry: where it takes the vertices that it moves."""


@dataclass(frozen=True)
class TreeNetwork:
    """Vertices 0, 1, .. by name, the first ``ranks`` of them ranks, the others switches and ports.

    ``measured``: arcs carry bytes per second; else chunks a round.  ``without``: what has failed.
    """

    name: str
    ranks: int
    measured: bool
    without: tuple[str, ...]
    vertices: tuple[str, ...]
    arcs: tuple[NetworkArc, ...]

    @cached_property
    def places(self) -> Mapping[tuple[int, int], Sequence[int]]:
        """The arcs from one vertex to another, the narrowest first."""
        found = defaultdict(list)
        for number, (tail, head, _) in enumerate(self.arcs):
            found[tail, head].append(number)
        return {ends: sorted(these, key=self._width) for ends, these in found.items()}

    def _width(self, arc: int) -> tuple[bool, Fraction]:
        bandwidth = self.arcs[arc][2]
        return bandwidth is None, bandwidth or Fraction(0)

    @cached_property
    def around(self) -> Sequence[Sequence[int]]:
        """By vertex the arcs that begin or end there."""
        found: list[list[int]] = [[] for _ in self.vertices]
        for number, (tail, head, _) in enumerate(self.arcs):
            found[tail].append(number)
            found[head].append(number)
        return found

    def reversed(self) -> TreeNetwork:
        """Every arc turned round; arcs keep their numbers."""
        turned = tuple((head, tail, bandwidth) for tail, head, bandwidth in self.arcs)
        return replace(self, arcs=turned)


@dataclass(frozen=True, slots=True)
class WeightedTree:
    """A part ``weight`` of its root's data, and for every other rank the arcs that lead to it.

    Of a tree that adds up so in the network turned round: from the root outwards.
    """

    root: int
    weight: Fraction
    ways: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ForestClaim:
    """That trees take ``time``, and no schedule that mixes no chunks less than ``bound``.

    ``parts``: sets of vertices.  Mostly there is one, which all data outside has to enter (or all
    data inside to leave, where it is added up).  Of an all-reduce each rank is in one of several.
    """

    collective: BoundedCollective
    root: int | None
    time: Fraction
    bound: Fraction
    network: TreeNetwork
    symmetries: tuple[Moves, ...]
    parts: tuple[frozenset[int], ...]
    copying: tuple[WeightedTree, ...]
    adding: tuple[WeightedTree, ...]

    @property
    def optimal(self) -> bool:
        """Whether no forest is faster."""
        return self.time == self.bound

    def data(self) -> dict[str, Any]:
        """The file as plain data."""
        return {"schema_version": FOREST_VERSION, "kind": FOREST_KIND, **plain.data_of(self)}

    def text(self) -> str:
        """The text of the file."""
        return json.dumps(self.data()) + "\n"


# The file, read strictly.


_KEYS = (
    *("schema_version", "kind", "collective", "root", "time", "bound", "network", "symmetries"),
    *("parts", "copying", "adding"),
)


def is_forest(data: object) -> bool:
    """Whether the data of a JSON file says that it is a forest."""
    return isinstance(data, dict) and data.get("kind") == FOREST_KIND


def forest_of_text(text: str, source: str = "forest") -> ForestClaim:
    """The claim in the text of a file; ``source`` names it in messages.

    Raises:
        InputError: it is no forest.
    """
    return forest_of(plain.parsed(text, source), source)


def forest_of(data: Any, source: str) -> ForestClaim:
    """The claim in the data of a file.

    Raises:
        InputError: it is no forest.
    """
    version, kind, collective, root, time, bound, net, symmetries, parts, copying, adding = (
        plain.keys(data, _KEYS, source)
    )
    if type(version) is not int or version != FOREST_VERSION or kind != FOREST_KIND:
        rule = f"must be {FOREST_VERSION} and {FOREST_KIND}"
        raise plain.refused(source, "schema_version and kind", rule)
    if collective not in (*OUTWARD, *INWARD):
        known = ", ".join(dict.fromkeys((*OUTWARD, *INWARD)))
        raise plain.refused(source, "collective", f"must be one of {known}")
    named, read = BoundedCollective(collective), _network(net, source)
    if named.rooted == (root is None):
        rule = "must be a rank" if named.rooted else f"must be null: {named} has none"
        raise plain.refused(source, "root", rule)
    return ForestClaim(
        named,
        plain.open_number(root, read.ranks, source, "root"),
        plain.fraction(time, source, "time"),
        plain.fraction(bound, source, "bound"),
        read,
        plain.items(symmetries, lambda one: _moves(one, read, source), source, "symmetries"),
        plain.items(parts, lambda one: _part(one, read, source), source, "parts"),
        plain.items(copying, lambda one: _tree(one, read, source), source, "copying"),
        plain.items(adding, lambda one: _tree(one, read, source), source, "adding"),
    )


def _network(data: Any, source: str) -> TreeNetwork:
    name, ranks, measured, without, vertices, arcs = plain.keys(
        data, ("name", "ranks", "measured", "without", "vertices", "arcs"), source
    )
    names = plain.items(vertices, lambda v: plain.text(v, source, "a vertex"), source, "vertices")
    if len(names) > MAX_VERTICES:
        raise plain.refused(source, f"{len(names)} vertices", f"must be at most {MAX_VERTICES}")
    if type(measured) is not bool:
        raise plain.refused(source, "measured", "must be true or false")

    def arc(one: Any) -> NetworkArc:
        tail, head, bandwidth = plain.row(one, 3, source, "an arc")
        a, b = (plain.whole(end, len(names), source, "vertex") for end in (tail, head))
        if bandwidth is None:
            return a, b, None
        return a, b, plain.fraction(bandwidth, source, "bandwidth")

    many = plain.whole(ranks, len(names) + 1, source, "ranks")
    return TreeNetwork(
        plain.text(name, source, "name"),
        many,
        measured,
        plain.items(without, lambda one: plain.text(one, source, "a failure"), source, "without"),
        names,
        plain.items(arcs, arc, source, "arcs"),
    )


def _moves(data: Any, net: TreeNetwork, source: str) -> Moves:
    def move(one: Any) -> tuple[int, int]:
        a, b = plain.row(one, 2, source, "a move")
        every = len(net.vertices)
        return plain.whole(a, every, source, "vertex"), plain.whole(b, every, source, "vertex")

    pairs = plain.items(data, move, source, "a symmetry")
    if len(dict(pairs)) < len(pairs):
        raise plain.refused(source, "a symmetry", "moves a vertex twice")
    return dict(pairs)


def _part(data: Any, net: TreeNetwork, source: str) -> frozenset[int]:
    every = len(net.vertices)
    found = plain.items(data, lambda v: plain.whole(v, every, source, "vertex"), source, "a part")
    if len(set(found)) < len(found):
        raise plain.refused(source, "a part", "names a vertex twice")
    return frozenset(found)


def _tree(data: Any, net: TreeNetwork, source: str) -> WeightedTree:
    root, weight, ways = plain.keys(data, ("root", "weight", "ways"), source)

    def way(one: Any) -> tuple[int, ...]:
        return plain.items(one, lambda a: plain.whole(a, len(net.arcs), source, "arc"), source, "")

    return WeightedTree(
        plain.whole(root, net.ranks, source, "root"),
        plain.fraction(weight, source, "weight"),
        plain.items(ways, way, source, "ways"),
    )


# The check.


@dataclass(frozen=True, slots=True)
class ForestReport:
    """The verdict on a forest: the first thing that is wrong, if any."""

    claim: ForestClaim
    faults: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether time and bound are proved."""
        return not self.faults


def check_forest(claim: ForestClaim) -> ForestReport:
    """Add everything up again; the first fault is enough."""
    net, words = claim.network, plain.words
    try:
        proved = proved_time(net, claim.collective, claim.root, claim.parts)
        taken = time_of_trees(claim)
    except NoProof as fault:
        return ForestReport(claim, (str(fault),))
    for what, claimed, found in (("bound", claim.bound, proved), ("time", claim.time, taken)):
        if claimed != found:
            wrong = f"the {what} {words(claimed)} is claimed, and it is {words(found)}"
            return ForestReport(claim, (wrong,))
    return ForestReport(claim, ())


def time_of_trees(claim: ForestClaim) -> Fraction:
    """What the busiest arc takes, whatever is claimed.

    Raises:
        NoProof: trees are none, do not bring everything, or load an arc that carries nothing.
    """
    orbits = orbits_of(claim.network, claim.symmetries, claim.root)
    return max(times_of_arcs(claim, orbits).values(), default=Fraction(0))


def times_of_arcs(claim: ForestClaim, orbits: Orbits) -> dict[int, Fraction]:
    """What arcs that have a limit take, by the first of those that symmetries make of each other.

    Raises:
        NoProof: as for all of them together.
    """
    every = range(claim.network.ranks) if claim.root is None else (claim.root,)
    roots = Counter(orbits.vertices[rank] for rank in every)
    loads: dict[int, Fraction] = defaultdict(Fraction)
    copied = _add_loads(claim.network, claim.copying, orbits, roots, loads)
    added = _add_loads(claim.network.reversed(), claim.adding, orbits, roots, loads)
    _check_whole(claim, roots, copied, added)
    sizes, found = Counter(orbits.arcs), dict[int, Fraction]()
    for arc, load in loads.items():
        bandwidth = claim.network.arcs[arc][2]
        if bandwidth == 0:
            raise NoProof("the trees load an arc that carries nothing")
        if bandwidth is not None:
            found[arc] = load / bandwidth / sizes[arc]
    return found


@dataclass(frozen=True, slots=True)
class Orbits:
    """By vertex and by arc the first of those that symmetries make of it."""

    vertices: Sequence[int]
    arcs: Sequence[int]


def orbits_of(net: TreeNetwork, symmetries: Iterable[Moves], root: int | None) -> Orbits:
    """What symmetries make of each other.

    Raises:
        NoProof: one of them is none: it moves the root, a rank to a switch, or breaks an arc.
    """
    vertices, arcs = list(range(len(net.vertices))), list(range(len(net.arcs)))
    for number, moves in enumerate(symmetries, 1):
        images = arc_images(net, moves)
        if images is None or (root is not None and moves.get(root, root) != root):
            raise NoProof(f"symmetry {number} does not keep ranks, root and arcs")
        for a, b in moves.items():
            join(vertices, a, b)
        for a, b in images.items():
            join(arcs, a, b)
    return Orbits([first_of(vertices, v) for v in vertices], [first_of(arcs, a) for a in arcs])


def arc_images(net: TreeNetwork, moves: Moves) -> dict[int, int] | None:
    """Where a map of vertices takes the arcs that it moves; None: it is no symmetry."""
    if set(moves) != set(moves.values()):
        return None
    if any((a < net.ranks) != (b < net.ranks) for a, b in moves.items()):
        return None
    found: dict[int, int] = {}
    for vertex in moves:
        for arc in net.around[vertex]:
            tail, head, bandwidth = net.arcs[arc]
            here = net.places[tail, head]
            there = net.places.get((moves.get(tail, tail), moves.get(head, head)), ())
            if len(here) != len(there):
                return None
            image = there[here.index(arc)]
            if net.arcs[image][2] != bandwidth:
                return None
            found[arc] = image
    return found


def first_of(leads: list[int], at: int) -> int:
    """The one that stands for all that were joined with ``at``."""
    while leads[at] != at:
        leads[at] = leads[leads[at]]
        at = leads[at]
    return at


def join(leads: list[int], a: int, b: int) -> None:
    """Let two, and all that were joined with them, be one."""
    a, b = sorted((first_of(leads, a), first_of(leads, b)))
    leads[b] = a


def entering(net: TreeNetwork, part: frozenset[int]) -> Fraction | None:
    """What the arcs into a set of vertices carry; None: more than any number."""
    total = Fraction(0)
    for vertex in part:
        for arc in net.around[vertex]:
            tail, head, bandwidth = net.arcs[arc]
            if head == vertex and tail not in part:
                if bandwidth is None:
                    return None
                total += bandwidth
    return total


def proved_time(
    net: TreeNetwork,
    collective: BoundedCollective,
    root: int | None,
    parts: Sequence[frozenset[int]],
) -> Fraction:
    """The least time that parts of the vertices prove.

    What ranks outside have must enter a part.  In an all-reduce between k parts of the ranks some
    part is the first to have all contributions, after k - 1 messages, and each other one then takes
    another: 2 (k - 1) for each unit, over arcs that enter parts.

    Raises:
        NoProof: they prove nothing.
    """
    turned = net if collective in OUTWARD else net.reversed()
    inside = Counter(vertex for part in parts for vertex in part if vertex < net.ranks)
    rooms = [entering(turned, part) for part in parts]
    limits = [room for room in rooms if room is not None]
    empty = any(min(part, default=net.ranks) >= net.ranks for part in parts)
    if not parts or empty or len(limits) < len(rooms) or not sum(limits):
        raise NoProof("a part has no ranks, or what enters it has no limit")
    if collective is _OWN.ALL_REDUCE:
        if len(inside) < net.ranks or set(inside.values()) != {1}:
            raise NoProof("every rank has to be in just one part")
        return Fraction(2 * (len(parts) - 1) * net.ranks) / sum(limits)
    if len(parts) != 1:
        raise NoProof(f"{collective} has one part")
    units = net.ranks - len(inside) if root is None else int(root not in inside)
    return Fraction(units) / limits[0]


def _add_loads(
    net: TreeNetwork,
    trees: Sequence[WeightedTree],
    orbits: Orbits,
    roots: Mapping[int, int],
    loads: dict[int, Fraction],
) -> dict[int, Fraction]:
    """Add what trees load to arcs; returns the weights in all of each orbit of roots."""
    sums: dict[int, Fraction] = defaultdict(Fraction)
    for number, tree in enumerate(trees, 1):
        if (fault := fault_of_tree(net, tree)) is not None:
            raise NoProof(f"tree {number} {fault}")
        orbit = orbits.vertices[tree.root]
        sums[orbit] += tree.weight
        for way in tree.ways:
            for arc in way:
                loads[orbits.arcs[arc]] += tree.weight * roots.get(orbit, 0)
    return sums


def _check_whole(
    claim: ForestClaim,
    roots: Mapping[int, int],
    copied: Mapping[int, Fraction],
    added: Mapping[int, Fraction],
) -> None:
    """Every root has trees for its unit; of an all-reduce all have trees for one each, in all.

    Raises:
        NoProof: it is not so.
    """
    both = claim.collective is _OWN.ALL_REDUCE
    for sums, of in ((copied, OUTWARD), (added, INWARD)):
        wanted = claim.collective in of
        if wanted and set(sums) - set(roots):
            raise NoProof("a tree has a root that has no data")
        if not wanted and sums:
            raise NoProof(f"{claim.collective} has no trees of that kind")
        if wanted and not both and any(sums.get(orbit) != 1 for orbit in roots):
            raise NoProof("the trees of a root do not add up to 1")
    if both and {k: v for k, v in copied.items() if v} != {k: v for k, v in added.items() if v}:
        raise NoProof("a root copies another part than it adds up")
    if both and sum(roots[orbit] * weight for orbit, weight in copied.items()) != sum(
        roots.values()
    ):
        raise NoProof("the trees of all roots do not add up to 1 for each")


def fault_of_tree(net: TreeNetwork, tree: WeightedTree) -> str | None:
    """Why ways are no tree from its root to all ranks; None: they are one."""
    after: dict[int, list[int]] = defaultdict(list)
    for way in tree.ways:
        ends = [net.arcs[arc][:2] for arc in way]
        if not ends or any(a[1] != b[0] for a, b in pairwise(ends)):
            return "has a way that is torn"
        if any(a[1] < net.ranks for a in ends[:-1]) or max(ends[0][0], ends[-1][1]) >= net.ranks:
            return "has a way that does not lead from one rank to the next"
        after[ends[0][0]].append(ends[-1][1])
    reached, frontier = {tree.root}, [tree.root]
    for rank in frontier:
        for other in after[rank]:
            if other in reached:
                return f"comes to rank {other} twice"
            reached.add(other)
            frontier.append(other)
    if len(reached) < net.ranks or len(tree.ways) >= net.ranks:
        return "does not come to every rank once"
    return None


def binding(claim: ForestClaim) -> Iterator[str]:
    """The arcs into the first part (or out of it), in words: what no forest gets round."""
    net, part = claim.network, claim.parts[0]
    for arc, (tail, head, bandwidth) in enumerate(net.arcs):
        far, near = (tail, head) if claim.collective in OUTWARD else (head, tail)
        if bandwidth is not None and near in part and far not in part:
            yield arc_words(net, arc)


def arc_words(net: TreeNetwork, arc: int) -> str:
    """An arc by its ends; a port by its own name."""
    first, last = (net.vertices[vertex] for vertex in net.arcs[arc][:2])
    return first if last == first + END else f"{first} to {last}"
