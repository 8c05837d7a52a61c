"""Costs over unknown numbers: rings with one protocol on every link, on a scene as it is.

Unknown are the cost c of a call, the latency of each level, and its seconds per byte times the
payload (:mod:`p2smt.cost.symbolic`).  Kinds of links, ports and what a device draws stay.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, product

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.symbolic.form import CostForm, SymbolicWay
from p2smt.cost.symbolic.steps import step_ways, symbolic_fixed
from p2smt.errors import TooLarge
from p2smt.problems.crossing import SumOfMaxima
from p2smt.programs.program import Program
from p2smt.search.explain.tables import ProgramTable, StepKey

_MOST = 64
"""So many ways to run the steps of one program are told apart."""

RingCosts = dict[SumOfMaxima, list[Program]]
"""The costs that programs have, each with these; a fixed step has a cost and no program."""


def over_rings(topology: Topology) -> Topology:
    """The cluster without a library, where rings run with the first protocol of each link."""
    plain = topology.nominal().running((Algorithm.RING,))
    levels = tuple(
        replace(level, link=replace(level.link, pieces=level.link.pieces[:1]))
        for level in plain.levels
    )
    return replace(plain, levels=levels)


def ring_costs(topology: Topology, table: ProgramTable, *, ordered: bool) -> RingCosts:
    """The costs of a table's programs; of a group of one device nothing, which costs nothing.

    ``ordered``: no latency is shorter than that of a level further in.  Unknown are then the
    innermost latency and what each level further out adds to the one inside it.

    Raises:
        InputError: a step has no linear form.
    """
    width, found = len(topology.levels), RingCosts()
    ways = [_ways(topology, table, key) for key in table.keys]
    known: dict[tuple[int, ...], list[SumOfMaxima]] = {}
    for row, steps in enumerate(table.steps.tolist()):
        used = tuple(sorted(k for k in steps if k < len(ways)))
        if used not in known:
            known[used] = _costs([ways[k] for k in used if ways[k]], width, ordered)
        for cost in known[used]:
            found.setdefault(cost, []).extend(table.programs[row : row + 1])
    return found


def _costs(steps: list[tuple[SymbolicWay, ...]], width: int, ordered: bool) -> list[SumOfMaxima]:
    """One for each choice of ways; the least of them is the cost."""
    chosen = list(product(*steps))
    if len(chosen) > _MOST:
        raise TooLarge(f"{len(chosen)} ways to run a program", f"are more than {_MOST}")
    return list(dict.fromkeys(_cost(CostForm.of(ways, width), width, ordered) for ways in chosen))


def _cost(form: CostForm, width: int, ordered: bool) -> SumOfMaxima:
    none = (Fraction(0),) * width
    before = (Fraction(0), *none)
    latency = tuple(accumulate(form.latency)) if ordered else form.latency
    return SumOfMaxima(
        (Fraction(form.calls), *latency, *none), tuple((*before, *m) for m in form.maxima)
    )


def _ways(topology: Topology, table: ProgramTable, key: StepKey) -> tuple[SymbolicWay, ...]:
    if key.operation is RequestKind.SEND:
        return symbolic_fixed(table.scene, RequestKind.SEND).steps[0].ways
    found = step_ways(topology, table.scene.digits, key.grouping, key.operation)
    return tuple(replace(w, loads=tuple(load * key.share for load in w.loads)) for w in found)
