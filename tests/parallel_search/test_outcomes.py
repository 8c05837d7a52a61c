"""Outcomes against brute force: every engine, any number of processes, split and unsplit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.parallel_search.best import digest_of
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engine import Engine, SearchOutcome
from p2smt.parallel_search.engines.processes import Processes
from p2smt.parallel_search.parallel_options import InProcess
from p2smt.parallel_search.subproblem import SearchKind, Subproblem
from p2smt.result import Status
from tests.parallel_search.toy import Toy
from tests.tiers import but_the_first

toys = st.builds(
    Toy,
    st.lists(st.integers(-3, 4), min_size=2, max_size=6).map(tuple),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 2),
    st.sampled_from(SearchKind),
    splits_at=st.integers(0, 6),
)


def assert_right(toy: Toy, top: int, outcome: SearchOutcome) -> None:
    """Hold a settled outcome against all members of the space."""
    members = sorted(toy.members_in(Subproblem()))
    assert not outcome.interrupted
    assert outcome.reason == ""
    assert outcome.unknown_subproblems == ()
    match toy.asked:
        case SearchKind.ENUMERATE:
            assert outcome.status is Status.COMPLETE
            digest = digest_of(m.witness for m in members)
            assert (outcome.count, outcome.digest) == (len(members), digest)
            assert outcome.best == tuple(members[:top])
        case SearchKind.OPTIMISE:
            assert outcome.status is (Status.OPTIMAL if members else Status.INFEASIBLE)
            assert outcome.best == tuple(members[:top])
            assert outcome.bound == (members[0].value if members else None)
        case SearchKind.DECIDE:
            assert outcome.status is (Status.OPTIMAL if members else Status.INFEASIBLE)
            assert len(outcome.best) == bool(members)
            assert set(outcome.best) <= set(members)
    if toy.asked is not SearchKind.DECIDE:
        assert outcome.open_subproblems == ()


@given(toys, st.integers(1, 5), st.sampled_from([None, 1.0]))
def test_an_outcome_is_that_of_brute_force(toy: Toy, top: int, budget_s: float | None) -> None:
    assert_right(toy, top, search(toy, InProcess(toy), top=top, budget_s=budget_s))


ENGINES: list[Callable[[Toy], Engine]] = [
    lambda toy: Processes(toy, 2),
    InProcess,
    lambda toy: Processes(toy, 1),
    lambda toy: Processes(toy, 4),
]


@pytest.mark.parametrize("engine", but_the_first(*ENGINES))
@pytest.mark.parametrize("asked", but_the_first(*reversed(SearchKind)))
def test_processes_change_nothing(engine: Callable[[Toy], Engine], asked: SearchKind) -> None:
    toy = Toy((3, -2, 5, 0, -1, 4, 0), 5, 2, 3, asked, splits_at=5, pause_s=0.002)
    for budget_s in (None, 1.0):
        assert_right(toy, 3, search(toy, engine(toy), top=3, budget_s=budget_s))
    nothing = replace(toy, modulus=1, forbidden=0)
    assert_right(nothing, 1, search(nothing, engine(nothing)))
