"""The layers that CP-SAT gets have the words of brute force, with their costs, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.encodings.program.cpsat_arcs import LayerRow, layers_of
from p2smt.encodings.program.reachable import build_table
from p2smt.problems.placement import InstructionSet, ProgramProblem, StepLimit
from tests.oracles.programs import Program, all_programs, price, ranked

KINDS = (RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER)


def problem(factors: tuple[int, ...], length: int, kind: RequestKind) -> ProgramProblem:
    return ProgramProblem(demand_of(kind), factors, length, InstructionSet.of(len(factors)))


def words(layers: list[list[LayerRow]]) -> Iterator[tuple[int, Program, tuple[int, ...]]]:
    """(cost, program, uses of each limit) of every path."""
    paths: list[tuple[int, int, Program, tuple[int, ...]]] = [(layers[0][0][0], 0, (), ())]
    for rows in layers:
        paths = [
            (
                target,
                total + cost,
                (*program, x - 1) if x else program,
                tuple(map(sum, zip(uses or (0,) * len(used), used, strict=True))),
            )
            for node, total, program, uses in paths
            for source, x, target, cost, *used in rows
            if source == node
        ]
    return ((total, program, uses) for _, total, program, uses in paths)


def priced(task: ProgramProblem, free: int) -> ProgramProblem:
    """Costs for all pairs that occur but every ``free``-th."""
    pairs = {pair for p, rows in all_programs(task).items() for pair in zip(p, rows, strict=True)}
    costs = {pair: 3 + 7 * n % 11 for n, pair in enumerate(sorted(pairs)) if n % free}
    return replace(task, costs=costs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("factors", "length"), [((4,), 3), ((3, 2), 5), ((2, 2, 2), 3)])
@pytest.mark.parametrize("at_most", [None, 12])
def test_words_and_costs_of_the_layers(
    factors: tuple[int, ...], length: int, kind: RequestKind, at_most: int | None
) -> None:
    task = priced(problem(factors, length, kind), free=9)
    expected = {p: price(p, rows, task.costs or {}) for p, rows in all_programs(task).items()}
    bound = 10**9 if at_most is None else at_most
    layers = layers_of(replace(task, at_most=at_most), build_table(task))
    found = list(words(layers)) if all(layers) else []
    assert sorted((cost, p) for cost, p, _ in found) == sorted(
        (cost, p) for p, cost in expected.items() if cost <= bound
    )


@pytest.mark.exhaustive
def test_uses_are_kept_apart() -> None:
    """Nodes are merged only where what follows counts towards the limits alike."""
    limit = StepLimit(frozenset(range(0, 45, 2)), 1)
    task = replace(problem((2, 2, 2), 3, RequestKind.ALL_REDUCE), limits=(limit,))
    found = list(words(layers_of(task, build_table(task))))
    assert len(found) == len(all_programs(task))
    for _, program, (used,) in found:
        assert used == sum(step in limit.instructions for step in program)
    assert {p for _, p, (used,) in found if used <= 1} == {p for _, p in ranked(task)}


def test_merging_leaves_few_tuples() -> None:
    task = problem((2, 2, 2, 2), 5, RequestKind.ALL_REDUCE)
    layers = layers_of(task, build_table(task))
    assert sum(map(len, layers)) < 1300
    assert len(list(words(layers))) == 3611
