"""The checker and both encodings expand any demand to the same matrices, each by its own code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import z3

from p2smt.collectives.demand import Chunks, Demand, Givers, Held, demand_of
from p2smt.collectives.names import RequestKind
from p2smt.encodings.program.reachable_search import DeviceContents
from p2smt.encodings.program.z3 import SymbolicState, initial_rows, is_goal
from p2smt.programs import semantics
from p2smt.runtime.job import JobRequest
from p2smt.runtime.programs.regions import start_rows
from p2smt.search.warm_start import RowCounts
from tests.oracles import programs as oracle

K = 3
GOALS = [Held(chunks, Givers.EVERY) for chunks in (Chunks.EVERY, Chunks.ONE_EACH)]
STARTS = [Held(*held) for held in itertools.product(list(Chunks)[:2], list(Givers)[:2])]
DEMANDS = [Demand(start, goal) for start, goal in itertools.product(STARTS, GOALS)]


def sets(words: list[list[int]]) -> oracle.State:
    """Matrices of bits as sets."""
    return tuple(
        tuple(frozenset(c for c in range(K) if row >> c & 1) for row in device) for device in words
    )


@pytest.mark.parametrize("demand", DEMANDS, ids=str)
def test_starts(demand: Demand) -> None:
    expected = oracle.initial(demand, K)
    checker = semantics.initial_state(demand, K)
    assert sets(checker[..., 0].tolist()) == expected
    table = DeviceContents(demand, K)
    contents = [table.known[number] for number in table.start(rows=30, one=10)]
    assert sets([[c.matrix >> K * r & 7 for r in range(K)] for c in contents]) == expected
    held = len(oracle.nonempty(expected[0]))
    assert [c.count for c in contents] == [10 * held] * K
    assert RowCounts(demand, (K,), ())._start.tolist() == [held] * 2
    direct = [[row.as_long() for row in device] for device in initial_rows(demand, K)]
    assert sets(direct) == expected


@pytest.mark.parametrize("demand", DEMANDS, ids=str)
def test_goals(demand: Demand) -> None:
    table = DeviceContents(demand, K)
    for filled in itertools.product(range(2**K), repeat=K):
        words = [[7 * (rows >> r & 1) for r in range(K)] for rows in filled]
        expected = oracle.is_goal(demand, sets(words))
        state = np.array(words, dtype=np.uint64)
        assert semantics.is_goal(demand, state[..., None]) is expected
        numbers = [table.number(table.complete(rows), rows, 0) for rows in filled]
        assert table.is_goal(tuple(numbers)) is expected


@pytest.mark.parametrize("demand", DEMANDS, ids=str)
def test_goals_as_constraints(demand: Demand) -> None:
    """No state is a goal of the direct encoding alone, or of the oracle alone."""
    state = [tuple(z3.BitVec(f"{d} {c}", K) for c in range(K)) for d in range(K)]
    goals = []
    for filled in itertools.product(range(2**K), repeat=K):
        words = [[7 * (rows >> r & 1) for r in range(K)] for rows in filled]
        if oracle.is_goal(demand, sets(words)):
            cells = zip(itertools.chain(*state), itertools.chain(*words), strict=True)
            goals.append(z3.And([cell == word for cell, word in cells]))
    assert goals
    solver = z3.Solver()
    # As in the states above, a row is empty or whole.
    solver.add([z3.Or(cell == 0, cell == 2**K - 1) for cell in itertools.chain(*state)])
    solver.add(z3.Xor(is_goal(demand, SymbolicState.of(state)), z3.Or(goals)))
    assert solver.check() == z3.unsat


@pytest.mark.parametrize("kind", [kind for kind in RequestKind if kind.has_programs])
def test_executors_start_with_the_same_rows(kind: RequestKind) -> None:
    held = start_rows(JobRequest("r", kind, (tuple(range(K)),), (), 8), K)
    expected = oracle.initial(demand_of(kind), K)
    assert [np.flatnonzero(own).tolist() for own in held] == [
        oracle.nonempty(device) for device in expected
    ]
