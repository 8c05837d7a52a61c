"""What a ranking says is proved: exhausted, out of time, interrupted, or with unproved prices."""

from __future__ import annotations

from p2smt.parallelism.placement import Matrix
from p2smt.plans.solution import Alternative
from p2smt.result import Status
from p2smt.search.bound_table import Proposal
from p2smt.search.near_optimal import Ranking

NOTHING_LEFT = Proposal(Status.INFEASIBLE, None, None)
OUT_OF_TIME = Proposal(Status.UNKNOWN, None, None)


def matrix(number: int) -> Matrix:
    return ((number,),)


def priced(number: int, seconds: float, status: Status = Status.OPTIMAL) -> Alternative:
    return Alternative(matrix(number), (), seconds, status)


def least(number: int, bound_s: float) -> Proposal:
    return Proposal(Status.OPTIMAL, matrix(number), bound_s)


def after(ranking: Ranking, *settled: Alternative) -> Ranking:
    """The ranking once these were proposed, priced, and proposed again."""
    for one in settled:
        ranking.take_bound(least(1, one.objective_s))
        ranking.take(one)
        ranking.settle(one)
    return ranking


def test_the_wanted_number_is_a_complete_ranking() -> None:
    ranking = after(Ranking(2), priced(1, 1.0))
    assert (ranking.unfinished, ranking.completeness) == (True, Status.TRUNCATED)
    assert ranking.excluded == {matrix(1)}
    after(ranking, priced(2, 2.0))
    assert (ranking.unfinished, ranking.completeness) == (False, Status.COMPLETE)
    assert [one.objective_s for one in ranking.alternatives] == [1.0, 2.0]


def test_a_short_ranking_is_complete_if_nothing_is_left() -> None:
    ranking = after(Ranking(10), priced(1, 1.0))
    ranking.take_bound(NOTHING_LEFT)
    assert (ranking.unfinished, ranking.status) == (False, Status.OPTIMAL)
    assert ranking.completeness is Status.COMPLETE


def test_nothing_at_all_is_infeasible_only_by_proof() -> None:
    ranking = Ranking(3)
    assert (ranking.status, ranking.completeness) == (Status.UNKNOWN, Status.TRUNCATED)
    ranking.take_bound(OUT_OF_TIME)
    assert (ranking.status, ranking.completeness) == (Status.UNKNOWN, Status.TRUNCATED)
    ranking.take_bound(NOTHING_LEFT)
    assert (ranking.status, ranking.completeness) == (Status.INFEASIBLE, Status.COMPLETE)
    assert ranking.alternatives == ()


def test_an_interrupt_before_the_first_rank_leaves_the_best_price() -> None:
    ranking = Ranking(2)
    ranking.take_bound(least(1, 0.5))
    for one in (priced(3, 3.0), priced(2, 2.0), priced(1, 2.0)):
        ranking.take(one)
    assert (ranking.status, ranking.completeness) == (Status.FEASIBLE, Status.TRUNCATED)
    assert [one.matrix for one in ranking.alternatives] == [matrix(1), matrix(2)]
    assert (ranking.least_s, ranking.bound_s) == (2.0, 0.5)


def test_the_time_limit_behind_the_first_rank_takes_nothing_back() -> None:
    ranking = after(Ranking(3), priced(1, 1.0))
    ranking.take(priced(2, 2.0))
    ranking.take_bound(OUT_OF_TIME)
    assert (ranking.status, ranking.completeness) == (Status.OPTIMAL, Status.TRUNCATED)
    assert [one.matrix for one in ranking.alternatives] == [matrix(1)]


def test_an_unproved_price_has_no_rank_nor_has_any_after_it() -> None:
    ranking = after(Ranking(2), priced(1, 3.0, Status.FEASIBLE), priced(2, 2.0))
    assert (ranking.ranked, ranking.status) == ([], Status.FEASIBLE)
    assert [one.matrix for one in ranking.alternatives] == [matrix(2), matrix(1)]
    assert ranking.excluded == {matrix(1), matrix(2)}
    assert ranking.unfinished, "one settled price of two"
    ranking.take_bound(NOTHING_LEFT)
    assert (ranking.status, ranking.completeness) == (Status.FEASIBLE, Status.TRUNCATED)


def test_as_many_settled_prices_as_are_wanted_are_enough() -> None:
    ranking = after(Ranking(2), priced(1, 3.0, Status.FEASIBLE), priced(2, 2.0), priced(3, 2.5))
    assert not ranking.unfinished
    assert ranking.completeness is Status.TRUNCATED


def test_the_search_gives_up_behind_many_unproved_prices() -> None:
    many = [priced(number, 1.0, Status.FEASIBLE) for number in range(100)]
    assert after(Ranking(1), *many[:99]).unfinished
    assert not after(Ranking(1), *many).unfinished


def test_only_proposals_from_all_matrices_prove_a_bound() -> None:
    ranking = Ranking(3)
    assert (ranking.bound_s, ranking.physical_bound_s) == (0.0, 0.0)
    ranking.take_links(0.5)
    ranking.take_bound(least(1, 1.0))
    ranking.take_bound(least(2, 2.0))
    ranking.take_bound(least(1, 1.5))
    assert (ranking.proved_s, ranking.bound_s, ranking.physical_bound_s) == (2.0, 2.0, 0.5)
    ranking.settle(priced(2, 2.5))
    ranking.take_bound(least(3, 4.0))
    assert (ranking.bound_s, ranking.physical_bound_s) == (2.0, 0.5)


def test_bounds_do_not_exceed_the_best_price() -> None:
    ranking = Ranking(1)
    ranking.take_links(1.0 + 1e-15)
    ranking.take_bound(least(1, 1.0 + 1e-15))
    ranking.take(priced(1, 1.0))
    assert (ranking.bound_s, ranking.physical_bound_s) == (1.0, 1.0)
