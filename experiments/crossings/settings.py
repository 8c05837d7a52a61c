"""Which settings the study asks about: sizes of levels, ports, requests, calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from p2smt.collectives.names import RequestKind
from p2smt.plans.crossings.least_set import SymbolicSetting

MOST = 16
"""Largest N, k and number of ports of two levels."""
THREE = (
    *product((2, 3), repeat=3),
    *((2, 2, 4), (2, 4, 2), (4, 2, 2), (2, 4, 8)),
)
KINDS = (RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER)


def ports_of(inner: int) -> tuple[int, ...]:
    """Ports of an entity with so many devices that spread evenly."""
    return tuple(p for p in range(1, MOST + 1) if inner % p == 0 or p % inner == 0)


def two_levels(outer: int) -> Iterator[SymbolicSetting]:
    """Every setting of two levels with this outer size."""
    for inner in range(2, MOST + 1):
        for ports, kind, calls in product(ports_of(inner), KINDS, (False, True)):
            yield SymbolicSetting((outer, inner), (ports, 1), kind, calls=calls)


def three_levels(factors: tuple[int, ...]) -> Iterator[SymbolicSetting]:
    """The settings of three levels with these sizes, of one port each."""
    for kind, calls in product(KINDS, (False, True)):
        yield SymbolicSetting(factors, (1, 1, 1), kind, calls=calls)


def four_levels() -> tuple[list[SymbolicSetting], ...]:
    """Those of four levels, in parts: all-reduce without a cost per call, and the other two."""
    sizes, ports = (2,) * 4, (1,) * 4
    others = product(KINDS[1:], (False, True))
    return (
        [SymbolicSetting(sizes, ports, calls=False)],
        [SymbolicSetting(sizes, ports, kind, calls=calls) for kind, calls in others],
    )
