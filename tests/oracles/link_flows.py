"""The least time in which bytes can flow from device to device, over every link of a cluster.

Written from the rules of topology files alone; imports types only.  A message between devices that
first differ at a level takes the uplinks of both ends' entities at every switch level from there
inwards, each device by its own port; where siblings have links of their own only neighbours send,
and others forward.  Every device may forward, member or not.  A linear program splits everything
over all ways at once: no schedule, whatever its steps, is faster.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from p2smt.cluster.topology import LinkKind, Topology

Demand = tuple[int, tuple[int, ...], float]
"""From a device to each of several, the same bytes."""


@dataclass(frozen=True)
class Network:
    """Directed edges between devices; what each loads, by name; and the rates of these."""

    edges: tuple[tuple[int, int], ...]
    loads: tuple[tuple[object, ...], ...]
    rates: dict[object, float]


def network_of(topology: Topology) -> Network:
    devices = math.prod(topology.sizes)
    edges, loads, rates = [], [], dict[object, float]()
    for a, b in permutations(range(devices), 2):
        found = _loads(topology, a, b)
        if found is not None:
            edges.append((a, b))
            loads.append(tuple(found))
            rates |= found
    return Network(tuple(edges), tuple(loads), rates)


def _loads(topology: Topology, a: int, b: int) -> dict[object, float] | None:
    under = [math.prod(topology.sizes[j + 1 :]) for j in range(len(topology.sizes))]
    met = next(j for j, width in enumerate(under) if a // width != b // width)
    found: dict[object, float] = {}
    link, size = topology.levels[met].link, topology.sizes[met]
    if link.kind is not LinkKind.SWITCH:
        one, other = a // under[met], b // under[met]
        dims = (size,) if link.kind is LinkKind.RING else link.torus
        if dims and _hops(one % size, other % size, dims) != 1:
            return None
        found["link", met, one, other] = link.bandwidth_bytes_per_s
    for j in range(met, len(under)):
        inner = topology.levels[j].link
        if inner.kind is LinkKind.SWITCH:
            each, several = max(1, under[j] // inner.ports), max(1, inner.ports // under[j])
            rate = inner.bandwidth_bytes_per_s * several
            found["out", j, a // under[j], a % under[j] // each] = rate
            found["in", j, b // under[j], b % under[j] // each] = rate
            if inner.device_bandwidth_bytes_per_s:
                found["draw", j, a] = inner.device_bandwidth_bytes_per_s
    return found


def _hops(one: int, other: int, dims: Sequence[int]) -> int:
    found = 0
    for length in reversed(dims):
        apart = abs(one % length - other % length)
        found += min(apart, length - apart)
        one, other = one // length, other // length
    return found


def least_s(network: Network, demands: Sequence[Demand]) -> float:
    """The least time for all demands; what goes from one device to several is copied on the way.

    A flow for each target of a demand, and bytes of the demand on an edge no less than each.
    """
    edges, names = len(network.edges), list(network.rates)
    flows = [(n, target) for n, (_, targets, _) in enumerate(demands) for target in targets]
    first = len(flows) * edges
    columns = first + len(demands) * edges + 1
    at_most, equal = _Rows(), _Rows()
    for f, (n, target) in enumerate(flows):
        source, _, amount = demands[n]
        for e in range(edges):
            at_most.add([(f * edges + e, 1.0), (first + n * edges + e, -1.0)], 0.0)
        out, into = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for e, (a, b) in enumerate(network.edges):
            out[a].append(f * edges + e)
            into[b].append(f * edges + e)
        for device in {*out, *into} - {target}:
            terms = [(x, 1.0) for x in out[device]] + [(x, -1.0) for x in into[device]]
            equal.add(terms, amount if device == source else 0.0)
    loaded = defaultdict[object, list[int]](list)
    for e, loads in enumerate(network.loads):
        for name in loads:
            loaded[name] += [first + n * edges + e for n in range(len(demands))]
    for name in names:
        terms = [(x, 1.0) for x in loaded[name]]
        at_most.add([*terms, (columns - 1, -network.rates[name])], 0.0)
    cost = np.zeros(columns)
    cost[-1] = 1.0
    found = linprog(
        cost, at_most.matrix(columns), at_most.right, equal.matrix(columns), equal.right
    )
    assert found.status == 0, found.message
    return float(found.fun)


class _Rows:
    def __init__(self) -> None:
        self.right: list[float] = []
        self._at: list[tuple[int, int, float]] = []

    def add(self, terms: Sequence[tuple[int, float]], right: float) -> None:
        self._at += [(len(self.right), x, value) for x, value in terms]
        self.right.append(right)

    def matrix(self, columns: int) -> coo_matrix:
        rows, at, values = zip(*self._at, strict=True)
        return coo_matrix((values, (rows, at)), (len(self.right), columns))
