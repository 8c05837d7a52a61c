"""Copies as sums, and turned round in time: random ones, with second arrivals and useless ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import DisseminationProblem, StepSends, SumSchedule
from p2smt.synthesis.lowering import lowered
from p2smt.synthesis.reversal import pruned, reversed_sums, sums_of
from p2smt.synthesis.schedule_replay import broken_rule, dissemination_problem, spreads
from tests.synthesis.lowering.copies import TURNED, gossip, right
from tests.synthesis.lowering.sums import edges_of

FABRICS = [load_fabric(name) for name in ("ring:4", "mesh:3", "cube:2", "dgx1")]
SEEDS = st.integers(0, 2**32)


def one_way() -> Fabric:
    """A ring all of whose links lead on, so that the reversed fabric is another one."""
    fabric = load_fabric("ring:4")
    return replace(fabric, edges=tuple(e for e in fabric.edges if e.target == (e.source + 1) % 4))


def check(sums: SumSchedule, fabric: Fabric, collective: str, chunks: int, root: int) -> None:
    """Lowered it is right in every interleaving, and no message is for nothing."""
    right(
        lowered(
            sums,
            edges=edges_of(fabric),
            ranks=fabric.ranks,
            collective=collective,
            chunks=chunks,
            root=root,
            name=collective,
        )
    )


@given(SEEDS, st.sampled_from(FABRICS), st.sampled_from(["allgather", "broadcast", "scatter"]))
def test_what_is_pruned_answers_the_problem(seed: int, fabric: Fabric, collective: str) -> None:
    problem, steps = gossip(Random(seed), fabric, collective, 2, root=1)
    kept = pruned(problem, steps)
    assert broken_rule(problem, kept) is None
    arrivals = [(c, problem.edges[e][1]) for step in kept for c, e in step.sends]
    assert len(arrivals) == len(set(arrivals))
    if collective != "scatter":  # there everything that comes is asked for
        assert len(arrivals) == sum(len(chunk.goals) for chunk in problem.chunks)
    assert pruned(problem, kept) == kept
    check(sums_of(problem, steps), fabric, collective, 2, 1)


@given(SEEDS, st.sampled_from([*FABRICS[:3], one_way()]), st.sampled_from(sorted(TURNED)))
def test_turned_round_it_adds_every_input_once(seed: int, fabric: Fabric, collective: str) -> None:
    problem, steps = gossip(Random(seed), fabric.reversed(), TURNED[collective], 2, root=2)
    sums = reversed_sums(problem, steps, edges_of(fabric), adds=collective != "gather")
    assert [step.rounds for step in sums.steps] == [step.rounds for step in reversed(steps)]
    check(sums, fabric, collective, 2, 2)


def _path() -> tuple[Fabric, DisseminationProblem, tuple[StepSends, ...]]:
    fabric = one_way()
    problem = dissemination_problem(fabric, spreads("broadcast", 4, 1), 3, 3)
    return fabric, problem, tuple(StepSends(1, ((0, edge),)) for edge in range(3))


def test_a_chunk_that_does_not_come_is_named() -> None:
    fabric, problem, steps = _path()
    with pytest.raises(InputError, match="chunk 0: does not come to rank 3"):
        sums_of(problem, steps[:2])
    with pytest.raises(InputError, match="chunk 0: does not come to rank 1"):
        sums_of(problem, steps[1:])
    with pytest.raises(InputError, match="does not come to rank"):
        reversed_sums(problem, steps[:2], edges_of(fabric.reversed()))


def test_edges_that_are_not_those_turned_round_are_refused() -> None:
    fabric, problem, steps = _path()
    assert len(reversed_sums(problem, steps, edges_of(fabric.reversed())).steps) == 3
    with pytest.raises(InputError, match="turned round"):
        reversed_sums(problem, steps, edges_of(fabric))
    with pytest.raises(InputError, match="turned round"):
        reversed_sums(problem, steps, edges_of(fabric.reversed())[:3])


def test_two_equal_edges_are_each_turned_once() -> None:
    edges = ((0, 1, (0,)), (0, 1, (0,)), (1, 0, (1,)))
    back = ((0, 1, (1,)), (1, 0, (0,)), (1, 0, (0,)))
    fabric = load_fabric("ring:2")
    plain = dissemination_problem(fabric, spreads("broadcast", 2, 2), 1, 2)
    problem = replace(plain, edges=edges)
    sums = reversed_sums(problem, (StepSends(2, ((0, 0), (1, 1))),), back)
    assert [send.edge for send in sums.steps[0].sends] == [1, 2]
