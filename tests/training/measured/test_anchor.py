"""Constants of one's own cluster: against calculations by hand, and never more than are told."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.training_runs.anchors import anchored
from p2smt.training.measured.anchor import (
    GROUPS,
    ONE_RUN_SPREAD,
    WORSE_GROUPS,
    OwnRun,
    fit_anchor,
)
from p2smt.training.strategy import Strategy

SPREAD = 0.2
PARTS = ((10.0, 1.0, 4), (8.0, 3.0, 6), (9.0, 6.0, 8), (7.0, 2.0, 2), (11.0, 0.5, 5))
"""Seconds of computing, seconds on links and layers of runs, by their tp."""


def model(run: OwnRun, links: float, host_s: float) -> float:
    """Computing, communication on links that reach a part, and the host, one after another."""
    compute, sent, layers = PARTS[run.strategy.tp - 1]
    return compute + sent / links + layers * host_s


def runs(seconds: Sequence[float]) -> list[OwnRun]:
    return [OwnRun(Strategy(tp=n), one) for n, one in enumerate(seconds, start=1)]


def truth(count: int, factor: float, links: float = 1.0, host_s: float = 0.0) -> list[OwnRun]:
    bare = runs([1.0] * count)
    return runs([factor * model(run, links, host_s) for run in bare])


def test_one_run_gives_a_factor() -> None:
    found = fit_anchor(runs([12.1]), model, [7], SPREAD)
    assert found.reached == pytest.approx(11 / 12.1)
    assert found.scaled(20.0) == pytest.approx(22.0)
    assert found.range_of(20.0) == pytest.approx((22 * math.exp(-0.2), 22 * math.exp(0.2)))
    (row,) = found.runs
    assert (row.predicted_s, row.predicted_bytes) == (11.0, 7)
    assert row.scaled_s == pytest.approx(12.1)


def test_two_runs_give_the_geometric_mean_of_their_factors() -> None:
    found = fit_anchor(runs([11 * 1.1, 11 * 1.4]), model, [0, 0], SPREAD)
    assert found.constants.factor == pytest.approx(math.sqrt(1.1 * 1.4))
    assert (found.constants.links, found.constants.host_s) == (1.0, 0.0)
    assert found.spread == pytest.approx(math.log(1.4 / 1.1))


def test_two_runs_do_not_narrow_what_one_leaves_open() -> None:
    assert fit_anchor(truth(2, 1.1), model, [0, 0], SPREAD).spread == SPREAD


@pytest.mark.parametrize("count", [3, 4, 5])
@pytest.mark.parametrize("links", [0.5, 0.25, 1.0])
def test_slow_links_are_told_by_three_runs(count: int, links: float) -> None:
    found = fit_anchor(truth(count, 1.1, links=links), model, [0] * count, SPREAD).constants
    assert found.links == pytest.approx(links)
    assert found.factor == pytest.approx(1.1)
    assert found.host_s == 0


def test_a_slow_host_is_told_by_three_runs() -> None:
    found = fit_anchor(truth(4, 0.9, host_s=0.04), model, [0] * 4, SPREAD).constants
    assert found.host_s == pytest.approx(0.04)
    assert found.factor == pytest.approx(0.9)
    assert found.links == 1


def test_from_four_runs_on_the_band_is_theirs() -> None:
    assert fit_anchor(truth(4, 1.1), model, [0] * 4, SPREAD).spread == pytest.approx(0, abs=1e-9)
    assert fit_anchor(truth(3, 1.1), model, [0] * 3, SPREAD).spread == SPREAD


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=5))
def test_there_are_never_more_constants_than_runs(factors: list[float]) -> None:
    measured = runs([factor * sum(PARTS[n][:2]) for n, factor in enumerate(factors)])
    found = fit_anchor(measured, model, [0] * len(factors), SPREAD)
    told = 1 + (found.constants.links != 1) + (found.constants.host_s != 0)
    assert told <= min(2, max(1, len(factors) - 1))
    logs = [math.log(one.run.step_s / one.scaled_s) for one in found.runs]
    assert sum(logs) == pytest.approx(0, abs=1e-6)  # the factor leaves no common error


def test_the_study_is_of_now() -> None:
    found = anchored.groups()
    assert anchored.PAGE.read_text(encoding="utf-8") == anchored.page(found)
    assert round(anchored.left(found), 4) == ONE_RUN_SPREAD
    assert (sum(one.worse() for one in found), len(found)) == (WORSE_GROUPS, GROUPS)


def test_a_group_by_hand() -> None:
    one = anchored.AnchoredGroup("part", "set", "name", (0.1, 0.21, 0.0))
    pairs = [(0.21, 0.1), (0.0, 1 / 1.1 - 1), (0.1, 1.1 / 1.21 - 1), (0.0, 1 / 1.21 - 1)]
    assert list(one.pairs()) == [pytest.approx(pair) for pair in (*pairs, (0.1, 0.1), (0.21, 0.21))]
    assert one.before() == pytest.approx(0.1)
    assert one.after() == pytest.approx(0.1)
    assert not one.worse()
    assert list(one.pairs(0)) == [pytest.approx((before, before)) for before, _ in one.pairs()]
