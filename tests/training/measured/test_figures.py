"""Figures of predictions, against definitions written out anew."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from p2smt.errors import InputError
from p2smt.training.measured import efficiency_fit as figures
from tests.strategies.draws import shuffles

TIMES = st.lists(st.integers(1, 6).map(float), min_size=2, max_size=8)


@given(TIMES, shuffles())
def test_tau_is_that_of_scipy(measured: list[float], random: object) -> None:
    predicted = [float(x) for x in random.choices(range(1, 7), k=len(measured))]  # type: ignore[attr-defined]
    expected = kendalltau(measured, predicted).statistic
    expected = 0.0 if math.isnan(expected) else expected
    assert figures.kendall_tau(measured, predicted) == pytest.approx(expected)


def test_tau_of_shuffled_orders_is_zero_on_average() -> None:
    order = [1.0, 2.0, 3.0, 4.0]
    taus = [figures.kendall_tau(order, list(other)) for other in permutations(order)]
    assert sum(taus) == pytest.approx(0)
    assert max(taus) == 1
    assert min(taus) == -1


def test_errors() -> None:
    errors = figures.relative_errors([2.0, 4.0, 1.0], [1.0, 5.0, 1.0])
    assert errors == [-0.5, 0.25, 0.0]
    assert figures.mean_error(errors) == 0.25
    assert figures.median_error(errors) == 0.25


def test_regret_is_what_following_the_order_costs() -> None:
    measured, scores = [3.0, 2.0, 4.0], [0.1, 0.3, 0.2]
    assert figures.regret(measured, scores) == 0.5
    assert figures.regret(measured, scores, first=2) == 0.5
    assert figures.regret(measured, scores, first=3) == 0
    assert figures.place_of_best(measured, scores) == 3


@given(TIMES)
def test_who_knows_the_times_regrets_nothing(measured: list[float]) -> None:
    assert figures.regret(measured, measured) == 0
    assert figures.place_of_best(measured, measured) == 1


@pytest.mark.parametrize(("measured", "predicted"), [([], []), ([1.0], []), ([0.0], [1.0])])
def test_bad_times_are_refused(measured: list[float], predicted: list[float]) -> None:
    with pytest.raises(InputError):
        figures.relative_errors(measured, predicted)
