"""Algorithms that are named: which groups there can be, and what can run on none of them."""

from __future__ import annotations

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Collective
from p2smt.cost.library.suits import group_shapes
from p2smt.cost.requested_algorithms import NamedStep, check_asked, check_some, otherwise, running
from p2smt.errors import InputError
from tests.oracles.placements import all_matrices

H100 = load_topology("dgx-h100:4")
REDUCE, GATHER = Collective.ALL_REDUCE, Collective.ALL_GATHER


@pytest.mark.parametrize("members", [1, 2, 4, 8, 16, 32])
def test_the_shapes_of_groups_are_those_of_the_matrices(members: int) -> None:
    """A group's entries are its nodes and its members in each; parts divide both."""
    matrices = all_matrices(H100.sizes, (members, 32 // members))
    whole = {tuple(matrix[0]) for matrix in matrices if members > 1}
    assert set(group_shapes(H100, members, whole=True)) == whole
    parts = {
        (a, b)
        for nodes, local in whole
        for a in range(1, nodes + 1)
        for b in range(1, local + 1)
        if nodes % a == local % b == 0 and a * b > 1
    }
    assert set(group_shapes(H100, members)) == parts


@pytest.mark.parametrize(
    ("algorithm", "asked", "whole", "can"),
    [
        (Algorithm.NVLS, [(REDUCE, 8)], True, True),
        (Algorithm.NVLS, [(REDUCE, 16)], True, False),
        (Algorithm.NVLS, [(REDUCE, 16)], False, True),
        (Algorithm.NVLS, [(REDUCE, 16), (GATHER, 4)], True, True),
        (Algorithm.NVLS, [], True, True),
        (Algorithm.NVLS_TREE, [(REDUCE, 2)], False, False),
        (Algorithm.NVLS_TREE, [(REDUCE, 4)], True, True),
        (Algorithm.NVLS_TREE, [(GATHER, 4)], True, False),
        (Algorithm.PAT, [(GATHER, 4)], True, True),
        (Algorithm.PAT, [(GATHER, 8)], True, False),
        (Algorithm.PAT, [(GATHER, 8)], False, True),
        (Algorithm.TREE, [(GATHER, 8)], True, False),
        (Algorithm.TREE, [(GATHER, 8)], False, True),
    ],
)
def test_what_can_run_no_step_of_a_search(
    algorithm: Algorithm, asked: list[tuple[Collective, int]], whole: bool, can: bool
) -> None:
    topology = running(H100, (algorithm,))
    if can:
        check_asked(topology, asked, whole=whole)
        return
    with pytest.raises(InputError, match=rf"algorithms {algorithm.value}: .*only "):
        check_asked(topology, asked, whole=whole)


def test_steps_that_run_otherwise_are_listed_once_and_not_endlessly() -> None:
    topology = running(H100, (Algorithm.NVLS,))
    steps = [NamedStep(f"step {n % 5}", REDUCE, "ring") for n in range(10)]
    with pytest.raises(InputError, match="step 0; step 1; step 2; and 2 more"):
        check_some(topology, steps)
    check_some(topology, [*steps, NamedStep("inside", REDUCE, "nvls")])
    (note,) = otherwise(topology, [*steps, NamedStep("inside", REDUCE, "nvls")])
    assert note.endswith("by nvls: step 0; step 1; step 2; and 2 more")
    assert otherwise(H100, steps) == ()
