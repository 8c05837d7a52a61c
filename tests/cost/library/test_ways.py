"""Prices under a library: every message device by device, and the way that is taken."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import regular_model, step_model
from p2smt.cost.library.choice import LibraryChoice
from p2smt.cost.loads.footprint_explicit import explicit_footprint, explicit_send
from p2smt.cost.step_time import StepCostModel, Way
from p2smt.parallelism.placement import IntArray
from p2smt.programs.parts import by_size
from tests.cost.steps import OPERATIONS, PAYLOADS, SHUFFLES, pieces, same, steps
from tests.oracles import libraries as oracle
from tests.oracles.loads import CHAINS, walk
from tests.strategies.libraries import library_cases
from tests.strategies.topologies import Case
from tests.tiers import examples_of

NAMES = {algorithm.value: algorithm for algorithm in Algorithm}
Groups = IntArray | list[list[int]]


def prices(
    topology: Topology, groups: Groups, operation: Operation, payload: float, way: Way
) -> float:
    """What a way of the model takes, by the oracle."""
    library, algorithm = topology.known_library, NAMES.get(way.algorithm)
    rows = _rows(groups)
    return oracle.price(topology, library, rows, operation, algorithm, way.protocol, payload)


def _rows(groups: Groups) -> list[list[int]]:
    return groups.tolist() if isinstance(groups, np.ndarray) else groups


def carried(topology: Topology, groups: Groups, operation: Operation, way: Way) -> bool:
    """Whether the oracle says that links and groups allow the way."""
    library = topology.known_library
    orders = [walk(topology, row, library.joins_nodes) for row in _rows(groups)]
    algorithm = NAMES.get(way.algorithm)
    sent = oracle.carried_by(library, operation)
    return algorithm is None or oracle.can_carry(topology, orders, sent, algorithm)


@settings(derandomize=True, deadline=None, max_examples=examples_of(150))
@given(library_cases(), PAYLOADS)
def test_a_matrix_costs_its_messages(case: Case, payload: float) -> None:
    for digits, grouping, groups in steps(case):
        for operation in OPERATIONS if groups.shape[1] > 1 else ():
            model = regular_model(case.topology, digits, grouping, operation)
            for way in model.ways:
                expected = prices(case.topology, groups, operation, payload, way)
                assert same(way.seconds(payload), expected), (grouping, operation, way)
                assert carried(case.topology, groups, operation, way), (operation, way)


@settings(derandomize=True, deadline=None, max_examples=examples_of(150))
@given(library_cases(), PAYLOADS, SHUFFLES)
def test_a_rank_list_costs_its_messages(case: Case, payload: float, shuffle: Random) -> None:
    """The groups need not be even, and a library that does not join nodes takes its own way."""
    topology = case.topology
    devices = shuffle.sample(range(topology.devices), topology.devices)
    groups = np.array(devices).reshape(-1, case.placement.axis_sizes[case.axes[0]])
    footprint = explicit_footprint(topology, groups, topology.known_library.joins_nodes)
    for operation in OPERATIONS if groups.shape[1] > 1 else ():
        for way in step_model(topology, footprint, operation).ways:
            expected, seconds = (
                prices(topology, groups, operation, payload, way),
                way.seconds(payload),
            )
            if operation in CHAINS:  # both directions are charged, a chain's ends use one
                assert seconds >= expected * (1 - 1e-9), (operation, way)
            else:
                assert same(seconds, expected), (operation, way)
            assert carried(topology, groups, operation, way), (operation, way)


@settings(derandomize=True, deadline=None, max_examples=examples_of(150))
@given(library_cases(), PAYLOADS, SHUFFLES)
def test_groups_of_several_sizes_cost_their_messages(
    case: Case, payload: float, shuffle: Random
) -> None:
    """They run at the same time, in the way that the library takes for the largest."""
    topology = case.topology
    devices = shuffle.sample(range(topology.devices), topology.devices)
    groups = [row for row in pieces(devices, shuffle) if len(row) > 1]
    if not groups:
        return
    joins_nodes = topology.known_library.joins_nodes
    footprint = explicit_footprint(topology, by_size(groups), joins_nodes)
    for operation in Collective:
        for way in step_model(topology, footprint, operation).ways:
            expected = prices(topology, groups, operation, payload, way)
            if operation in CHAINS:
                assert way.seconds(payload) >= expected * (1 - 1e-9), (operation, way)
            else:
                assert same(way.seconds(payload), expected), (operation, way)
            assert carried(topology, groups, operation, way), (operation, way)


@settings(derandomize=True, deadline=None, max_examples=examples_of(100))
@given(library_cases(), PAYLOADS, SHUFFLES)
def test_sends_cost_their_messages(case: Case, payload: float, shuffle: Random) -> None:
    topology = case.topology
    devices = shuffle.sample(range(topology.devices), topology.devices)
    groups = np.array(devices).reshape(-1, case.placement.axis_sizes[case.axes[0]])
    if groups.shape[1] == 1:
        return
    footprint = explicit_send(topology, groups[:, :-1].ravel(), groups[:, 1:].ravel())
    for way in step_model(topology, footprint, RequestKind.SEND).ways:
        expected = prices(topology, groups, RequestKind.SEND, payload, way)
        assert same(way.seconds(payload), expected), way


# Which way is taken -----------------------------------------------------------------------


def picked(model: StepCostModel, payload: float) -> int:
    assert isinstance(model.chooser, LibraryChoice)
    return model.chooser.pick(payload)


@settings(derandomize=True, deadline=None, max_examples=examples_of(100))
@given(library_cases(), PAYLOADS)
def test_the_library_chooses_and_the_model_prices(case: Case, payload: float) -> None:
    """The ladder's first rung that holds the payload, else the least of the library's estimates."""
    for digits, grouping, groups in steps(case):
        for operation in OPERATIONS if groups.shape[1] > 1 else ():
            model = regular_model(case.topology, digits, grouping, operation)
            time = model.time(payload)
            if case.topology.best:
                assert time.seconds == min(way.seconds(payload) for way in model.ways)
                continue
            choice = model.chooser
            assert isinstance(choice, LibraryChoice)
            rungs = [index for most, index in choice.rungs if payload <= most]
            estimates = {index: one.seconds(payload) for index, one in choice.estimates}
            default = choice.rungs[-1][1] if choice.rungs else 0
            best = min(estimates, key=lambda index: estimates[index], default=default)
            way = model.ways[rungs[0] if rungs else best]
            assert (time.algorithm, time.protocol) == (way.algorithm, way.protocol)
            assert time.seconds == way.seconds(payload)


@settings(derandomize=True, deadline=None, max_examples=examples_of(100))
@given(library_cases())
def test_restrictions_and_overrides_hold_where_they_can(case: Case) -> None:
    """A ring where no algorithm that is allowed can run, or what the library has instead."""
    topology = case.topology
    for digits, grouping, groups in steps(case):
        for operation in Collective if groups.shape[1] > 1 else ():
            fixed = [a for collective, a in topology.overrides if collective is operation]
            allowed = fixed or (topology.algorithms if topology.restricted else tuple(Algorithm))
            runs = topology.known_library.runs_of(operation.value)
            found = regular_model(topology, digits, grouping, operation).ways
            used = {NAMES[way.algorithm] for way in found}
            only = {run.algorithm for run in runs[:1]}
            assert used <= {*allowed, Algorithm.RING} or used <= only, operation
