"""Algorithms that are asked for by name, and the steps that cannot run by them.

Where an algorithm that is named cannot run, a library runs another one, most often a ring (NCCL
keeps the ring for what NCCL_ALGO leaves without an algorithm), and so does the textbook.  Such a
step is priced as what runs, and said; where that is every step, nothing is left of what was asked
for, and it is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.cluster.topology import NO_LIBRARY, Algorithm, Topology
from p2smt.collectives.names import Collective
from p2smt.cost.library.suits import check_restricted, check_topology, group_shapes
from p2smt.errors import InputError

_OF_LIBRARIES = (Algorithm.NVLS, Algorithm.NVLS_TREE, Algorithm.PAT)
"""What nothing runs by without a library."""
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
        if algorithm in _OF_LIBRARIES:
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
