"""What a library must fulfil on a topology: that it can run there as it is asked to."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence

from p2smt.cluster.library.model import Library, LibraryAlgorithm, LibraryRun, NodeCount
from p2smt.cluster.topology import NO_LIBRARY, Algorithm, Topology
from p2smt.collectives.names import Collective
from p2smt.errors import InputError


def check_topology(topology: Topology, library: Library) -> None:
    """Whether a library can run on a topology as it asks.

    Raises:
        InputError: links were fitted without a library; or an algorithm that is named for a
            collective, or all that are named, are none of the library's, or nothing on the
            topology can run by them.
    """
    for level in topology.levels:
        if level.link.measured:
            given = f"{topology.name}: level {level.name}: measured"
            rule = f"was fitted without a library, and {library.name} does not count with it"
            remedy = f"write library: {NO_LIBRARY}, or calibrate with the library"
            raise InputError(given, rule, remedy)
    if not (topology.overrides or topology.restricted):
        return
    shapes = group_shapes(topology, topology.devices)
    for collective, algorithm in topology.overrides:
        runs = library.runs_of(collective.value)
        if not _runs_by(topology, runs, (algorithm,), shapes):
            where = f"{topology.name}: overrides.{collective.value}"
            who = f"{library.name} runs {collective.value} only by"
            raise _unable(where, who, topology, runs, (algorithm,))
    if topology.restricted:
        check_restricted(topology, library, tuple(Collective), shapes, f"{topology.name}: ")


def check_restricted(
    topology: Topology,
    library: Library,
    collectives: Sequence[Collective],
    shapes: Sequence[Shape],
    where: str = "",
) -> None:
    """Whether some of these collectives can run on groups of these shapes by the algorithms that a
    topology allows.

    Raises:
        InputError: none can; ``where`` says which topology that is.
    """
    runs = [run for collective in collectives for run in library.runs_of(collective.value)]
    if not _runs_by(topology, runs, topology.algorithms, shapes):
        one = f" {collectives[0].value} only by" if len(collectives) == 1 else " only"
        who = f"{library.name} runs{one}"
        raise _unable(f"{where}algorithms", who, topology, runs, topology.algorithms)


Shape = tuple[int, int]
"""Nodes that a group spans, and its members in each of them."""


def group_shapes(topology: Topology, members: int, *, whole: bool = False) -> list[Shape]:
    """The shapes of groups of so many members (``whole``), or of parts of such groups, if they lie
    evenly; one device alone is no group."""
    nodes = math.prod(topology.sizes[: topology.node_level + 1])
    across = _divisors(math.gcd(members, nodes))
    inside = _divisors(math.gcd(members, topology.devices // nodes))
    found = [(a, b) for a in across for b in inside if members % (a * b) == 0 and a * b > 1]
    return [(a, b) for a, b in found if a * b == members or not whole]


def _divisors(count: int) -> list[int]:
    small = [n for n in range(1, math.isqrt(count) + 1) if count % n == 0]
    return sorted({*small, *(count // n for n in small)})


def _runs_by(
    topology: Topology,
    runs: Iterable[LibraryRun],
    algorithms: Container[LibraryAlgorithm | None],
    shapes: Sequence[Shape],
) -> bool:
    """Whether groups of some shape can run by one of these algorithms; True if there are none."""
    inside = topology.levels[topology.node_level + 1 :]
    reduces = any(level.size > 1 and level.link.in_switch_members for level in inside)
    return not shapes or any(
        run.algorithm in algorithms
        and run.nodes.holds(nodes)
        and run.least_members <= nodes * local
        and (local == 1 or not run.one_rank_per_node)
        and run.fits_node(local)
        and ((reduces and local > 1) or not run.in_switch)
        for run in runs
        for nodes, local in shapes
    )


def _unable(
    where: str,
    who: str,
    topology: Topology,
    runs: Sequence[LibraryRun],
    named: Sequence[LibraryAlgorithm],
) -> InputError:
    """That nothing can run by the algorithms named: the library, or the topology, lacks what they
    need."""
    given = f"{where} {', '.join(algorithm.value for algorithm in named)}"
    asked = [run for run in runs if run.algorithm in named]
    if not asked:
        known = {run.algorithm for run in runs}
        shown = ", ".join(algorithm.value for algorithm in Algorithm if algorithm in known)
        return InputError(given, f"{who} {shown}", f"name one of these, or library: {NO_LIBRARY}")
    switches = any(level.link.in_switch_members for level in topology.levels)
    if all(run.in_switch for run in asked) and not switches:
        rule = "reduces in switches, and no link of the topology has in_switch_reduction"
        return InputError(given, rule, "add it, or allow ring")
    places = " or ".join(dict.fromkeys(map(_where, asked)))
    return InputError(given, f"runs only {places}, and there are no such groups", "allow ring")


def _where(run: LibraryRun) -> str:
    if run.one_rank_per_node:
        return "where a node has one member of a group"
    return {NodeCount.ONE: "inside a node", NodeCount.SEVERAL: "across nodes"}.get(
        run.nodes, f"in groups of {run.least_members}"
    )
