"""Algorithms that are asked for by name, and the steps that cannot run by them.

Where an algorithm that is named cannot run, a library runs another one, most often a ring (NCCL
keeps the ring for what NCCL_ALGO leaves without an algorithm), and so does the textbook.  Such a
step is priced as what runs, and said; where that is every step, nothing is left of what was asked
for, and it is an error.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from p2smt.cluster.library.model import Library, LibraryAlgorithm, LibraryRun, NodeCount
from p2smt.cluster.link import OF_LIBRARIES
from p2smt.cluster.topology import NO_LIBRARY, Algorithm, Topology
from p2smt.collectives.names import Collective, Operation, RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.matrices import divisors

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class NamedStep:
    """A step of an answer in words, its collective, and the name of the algorithm that runs it."""

    text: str
    collective: Collective
    algorithm: str


def running(topology: Topology, algorithms: tuple[Algorithm, ...] | None) -> Topology:
    """The topology where collectives run by the algorithms named (None: as it says itself).

    Raises:
        InputError: one of them nothing runs there, or its library cannot run as the topology asks.
    """
    found = topology if algorithms is None else topology.running(algorithms)
    for algorithm in algorithms or ():
        _check_known(topology, algorithm)
    if found.library is not None:
        check_topology(found, found.library)
    return found


def check_asked(
    topology: Topology, asked: Sequence[tuple[Collective, int]], *, whole: bool
) -> None:
    """Whether a step of some of these collectives over so many devices can run as named.

    ``whole``: each in one step over all of them; otherwise also by other collectives over parts of
    them.  Groups are those of placement matrices.

    Raises:
        InputError: none can.
    """
    if not (topology.library and topology.restricted and asked):
        return
    library, found = topology.known_library, None
    for collective, members in asked:
        shapes = group_shapes(topology, members, whole=whole)
        try:
            check_restricted(topology, library, (collective,) if whole else (*Collective,), shapes)
        except InputError as fault:
            found = found or fault
        else:
            return
    if found is not None:
        raise found


def _check_known(topology: Topology, algorithm: Algorithm) -> None:
    given = f"algorithm {algorithm.value}"
    if not topology.library:
        if algorithm in OF_LIBRARIES:
            rule = "is known to libraries only, and there is none"
            raise InputError(given, rule, "name a library, or ring")
        return
    known = topology.known_library.algorithms
    if algorithm not in known:
        rule = f"{topology.library_name} runs only {', '.join(one.value for one in known)}"
        raise InputError(given, rule, f"name some of these, or library: {NO_LIBRARY}")


def runs_otherwise(topology: Topology, step: NamedStep) -> bool:
    """Whether a step runs by an algorithm that is not the one, or none of those, named for it."""
    named = topology.named_for(step.collective)
    return named is not None and step.algorithm not in {one.value for one in named}


def otherwise(topology: Topology, steps: Sequence[NamedStep]) -> tuple[str, ...]:
    """Notes on the steps that do not run by the algorithm that is named for them, in words."""
    found: dict[tuple[str, str], list[str]] = {}
    for step in dict.fromkeys(steps):
        if runs_otherwise(topology, step):
            key = _names(topology, step.collective), step.algorithm
            found.setdefault(key, []).append(step.text)
    who = topology.library_name or "the topology"
    return tuple(
        f"by {algorithm}, as {who} cannot run it by {named}: {_listed(texts)}"
        for (named, algorithm), texts in found.items()
    )


def named_notes(
    topology: Topology, algorithms: tuple[Algorithm, ...] | None, steps: Sequence[NamedStep]
) -> tuple[str, ...]:
    """Notes on the steps that do not run by what is named for them: by ``algorithms``, which were
    asked for, or (None) by the topology's own ``overrides`` and ``restricted``.

    Raises:
        InputError: there are steps, and none runs by what was asked for.
    """
    found = running(topology, algorithms)
    if algorithms is not None:
        check_some(found, steps)
    return otherwise(found, steps)


def check_some(topology: Topology, steps: Sequence[NamedStep]) -> None:
    """Whether any step runs by an algorithm that is named for it.

    Raises:
        InputError: there are steps, and none does.
    """
    if not steps or not all(runs_otherwise(topology, step) for step in steps):
        return
    names = dict.fromkeys(_names(topology, step.collective) for step in steps)
    rule = f"{topology.library_name or 'the topology'} cannot run any step by it: "
    texts = dict.fromkeys(step.text for step in steps)
    runs = dict.fromkeys(step.algorithm for step in steps)
    remedy = f"name {' or '.join(runs)}, which can"
    raise InputError(f"algorithm {', '.join(names)}", rule + _listed(list(texts)), remedy)


def _names(topology: Topology, collective: Collective) -> str:
    return ", ".join(one.value for one in topology.named_for(collective) or ())


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _SHOWN
    return "; ".join(texts[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


# What a topology says that does not count, or fits ill with the library that is to run on it.


_MAKERS = (("nvlink", "NVIDIA"), ("xgmi", "AMD"), ("ici", "Google"))
"""Whose devices have a fabric, by the start of its name; a network says nothing of them."""


def topology_notes(topology: Topology) -> tuple[str, ...]:
    """What is to be said, in words, beside every answer on a topology."""
    notes = (_foreign(topology), _without_library(topology))
    return tuple(note for note in notes if note)


def _foreign(topology: Topology) -> str:
    """That the library is one that another maker of devices has made for its own."""
    if not topology.library:
        return ""
    library, fabrics = topology.known_library, [lv.link.fabric for lv in topology.levels]
    makers = {maker for start, maker in _MAKERS for one in fabrics if one.startswith(start)}
    if not makers or library.vendor in makers or library.vendor not in dict(_MAKERS).values():
        return ""
    has = ", ".join(sorted({one for one in fabrics if one.startswith(tuple(dict(_MAKERS)))}))
    return (
        f"{library.name} is made for devices of {library.vendor}, and {topology.name} has {has} "
        f"({', '.join(sorted(makers))}): its choice and its costs there are of nothing that runs"
    )


def _without_library(topology: Topology) -> str:
    """That constants were fitted which only a library counts with."""
    links = [level.link for level in topology.levels]
    fitted = {
        "calls": bool(topology.calls),
        "hops": any(link.hops for link in links),
        "efficiency": topology.calibrated and any(link.efficiency for link in links),
    }
    names = [name for name, given in fitted.items() if given]
    if topology.library_name or not names:
        return ""
    return (
        f"{topology.name} has fitted {', '.join(names)}, which count under a library only: "
        "without one the links' own rates and latencies do"
    )


# What a library must fulfil on a topology: that it can run there as it is asked to.


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
        every = (*Collective, RequestKind.ALL_TO_ALL)
        check_restricted(topology, library, every, shapes, f"{topology.name}: ")


def check_restricted(
    topology: Topology,
    library: Library,
    collectives: Sequence[Operation],
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
    across = divisors(math.gcd(members, nodes))
    inside = divisors(math.gcd(members, topology.devices // nodes))
    found = [(a, b) for a in across for b in inside if members % (a * b) == 0 and a * b > 1]
    return [(a, b) for a, b in found if a * b == members or not whole]


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
