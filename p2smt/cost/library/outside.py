"""Algorithms that a program adds: each has a name and a rule; libraries may run it by that name.

An :class:`~p2smt.cluster.topology.Algorithm` is one that this package prices itself; an
:class:`AddedAlgorithm` stands beside it wherever a library says what it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from p2smt.cluster.topology import LIBRARY_PATTERN, Algorithm
from p2smt.cost.algorithms import Operation
from p2smt.cost.library.rules import LibraryRule
from p2smt.cost.loads.level_use import Footprint
from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean

POINT_TO_POINT = "p2p"
"""How libraries name messages from peer to peer, which are no algorithm, and their hops."""
FAMILIES = ("ring", "tree", "nvls", "pat", POINT_TO_POINT)
"""What the hops of an algorithm are listed under."""
AlgorithmRule = Callable[[Operation, Footprint, int], LibraryRule | None]
"""From an operation, the groups of a step and the index of the node level (-1: one node) to what
the algorithm loads and pays; None: it cannot run that, and the library leaves it out."""


@dataclass(frozen=True, slots=True)
class AddedAlgorithm:
    """An algorithm by the name under which it was registered.

    It holds no more than the name, and so can be sent to another process; that one must have
    registered the algorithm as well, or its use is an error there.
    """

    value: str


LibraryAlgorithm = Algorithm | AddedAlgorithm
_ADDED: dict[str, tuple[AlgorithmRule, str]] = {}


def register_algorithm(
    name: str, rule: AlgorithmRule, family: str = POINT_TO_POINT
) -> AddedAlgorithm:
    """Make an algorithm known by a name; the same rule may be added again.

    ``family`` says whose hops its steps cost (``FAMILIES``).

    Raises:
        InputError: the name is none, or belongs to another algorithm; there is no such family.
    """
    if not re.fullmatch(LIBRARY_PATTERN, name):
        rule_text = "must be lower-case letters, digits, . _ -"
        raise InputError(f"algorithm {name[:60]!r}", rule_text, "rename it")
    if family not in FAMILIES:
        raise InputError(f"family {family[:60]!r}", f"must be one of {', '.join(FAMILIES)}")
    own = name == POINT_TO_POINT or name in {algorithm.value for algorithm in Algorithm}
    if own or _ADDED.get(name, (rule, family)) != (rule, family):
        raise InputError(f"algorithm {name}", "another algorithm has this name", "rename yours")
    _ADDED[name] = (rule, family)
    return AddedAlgorithm(name)


def added_algorithms() -> tuple[AddedAlgorithm, ...]:
    """Every algorithm that was registered, by name."""
    return tuple(AddedAlgorithm(name) for name in sorted(_ADDED))


def named_algorithm(name: object) -> LibraryAlgorithm | None:
    """The algorithm that a library lists under a name; None for messages from peer to peer.

    Raises:
        InputError: there is none, nor was one registered.
    """
    every: tuple[LibraryAlgorithm, ...] = (*Algorithm, *added_algorithms())
    known = {algorithm.value: algorithm for algorithm in every}
    if name == POINT_TO_POINT:
        return None
    if name not in known:
        rule = f"must be one of {', '.join(known)}, {POINT_TO_POINT}"
        raise InputError(f"value {str(name)[:40]!r}", rule, did_you_mean(str(name), known))
    return known[str(name)]


def added_rule(
    algorithm: AddedAlgorithm, operation: Operation, footprint: Footprint, node_level: int
) -> LibraryRule | None:
    """What an added algorithm loads and pays; None: it cannot run that.

    Raises:
        InputError: this process has registered no such algorithm.
    """
    return _found(algorithm)[0](operation, footprint, node_level)


def added_family(algorithm: AddedAlgorithm) -> str:
    """Whose hops an added algorithm's steps cost.

    Raises:
        InputError: this process has registered no such algorithm.
    """
    return _found(algorithm)[1]


def _found(algorithm: AddedAlgorithm) -> tuple[AlgorithmRule, str]:
    if algorithm.value not in _ADDED:
        remedy = "call register_algorithm in this process before it is used"
        raise InputError(f"algorithm {algorithm.value[:60]}", "is not registered", remedy)
    return _ADDED[algorithm.value]
