"""What the tests of costs share: steps of a case, and when two ways to cost them agree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from hypothesis import strategies as st

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.loads.footprint import Digits, digits_of
from p2smt.cost.step_time import StepCostModel
from p2smt.parallelism.placement import IntArray
from p2smt.programs.program import Grouping, groupings, lower
from tests.strategies.draws import shuffles
from tests.strategies.topologies import Case

OPERATIONS: tuple[Operation, ...] = (*Collective, RequestKind.ALL_TO_ALL)
SHUFFLES = shuffles()
PAYLOADS = st.sampled_from([0.0, 1.0, 12.0, 997.0, 1e9])


def only(topology: Topology, algorithm: Algorithm) -> Topology:
    return topology.running((algorithm,))


def steps(case: Case) -> Iterator[tuple[tuple[Digits, ...], Grouping, IntArray]]:
    """Every grouping of the case's reduction hierarchy with its device groups."""
    digits = digits_of(case.placement, case.axes)
    factors = [f for f in case.placement.factors(case.axes) if f > 1]
    for grouping in groupings(len(factors)):
        yield digits, grouping, lower(case.placement.groups(case.axes), factors, grouping)


def same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def same_ways(one: StepCostModel, other: StepCostModel, payload: float) -> bool:
    def named(model: StepCostModel) -> dict[tuple[str, str], float]:
        return {(w.algorithm, w.protocol): w.seconds(payload) for w in model.ways}

    left, right = named(one), named(other)
    return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)


def pieces(devices: list[int], shuffle: Random) -> Iterator[list[int]]:
    """Devices in order, cut into groups of 1 to 5."""
    at = 0
    while at < len(devices):
        count = shuffle.randint(1, 5)
        yield devices[at : at + count]
        at += count
