"""The robust fit: recovery, outliers, and how many pieces are chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.calibration.fit import MAX_OUTLIERS, Fit, Lines, fit_pieces
from p2smt.calibration.fit_rows import Ask, Inside, Row, make_table, piece_names
from p2smt.errors import InputError
from tests.strategies.draws import Draws, draws
from tests.tiers import but_the_first, examples_of

# (latency, bytes per second), the piece of large messages first: each is the least somewhere.
ONE = ((20e-6, 100e9),)
TWO = ((20e-6, 200e9), (2e-6, 8e9))
THREE = ((40e-6, 200e9), (8e-6, 20e9), (1e-6, 0.4e9))
SIZES = tuple(2**i for i in range(3, 33))


def rows_of(truth: Sequence[tuple[float, float]], sizes: Sequence[int] = SIZES) -> list[Row]:
    """Noise-free rows of an all-reduce ring of 8."""
    asks = [Ask(14, 1.75 * size) for size in sizes]
    return [Row(min(14 * a + ask.load_bytes / w for a, w in truth), (ask,)) for ask in asks]


def with_outliers(rows: Sequence[Row], factors: dict[int, float]) -> list[Row]:
    """Some rows with another time."""
    return [Row(r.seconds * factors.get(i, 1.0), r.asks) for i, r in enumerate(rows)]


def assert_recovers(fit: Fit, truth: Sequence[tuple[float, float]]) -> None:
    found = [(p.latency_s, p.bandwidth_bytes_per_s) for p in fit.pieces]
    assert len(found) == len(truth)
    np.testing.assert_allclose(found, truth, rtol=1e-4)


@pytest.mark.parametrize("truth", [ONE, TWO, THREE])
def test_noise_free_rows_give_back_their_pieces(truth: tuple[tuple[float, float], ...]) -> None:
    fit = fit_pieces(rows_of(truth))
    assert_recovers(fit, truth)
    assert fit.outliers == ()
    assert fit.max_error < 1e-5
    assert fit.held_out[len(truth) - 1] < 1e-3 < min((1.0, *fit.held_out[: len(truth) - 1]))


@pytest.mark.parametrize("truth", [ONE, TWO, THREE])
@pytest.mark.parametrize("factor", but_the_first(1 / 0.35, 1.65, 0.35))
def test_a_tenth_of_outliers_is_found_and_left_out(
    truth: tuple[tuple[float, float], ...], factor: float
) -> None:
    where = {5: factor, 15: factor, 22: factor}
    fit = fit_pieces(with_outliers(rows_of(truth), where))
    assert_recovers(fit, truth)
    assert fit.outliers == tuple(where)
    assert fit.errors[5] == pytest.approx(1 / factor - 1, rel=1e-3)


@pytest.mark.exhaustive
@settings(max_examples=examples_of(8))
@given(draws())
def test_any_two_pieces_are_found(data: Draws) -> None:
    slow = data.draw(st.floats(1e-6, 1e-3))
    fast = data.draw(st.floats(1e9, 1e12))
    truth = ((slow, fast), (slow / data.draw(st.floats(4, 20)), fast / data.draw(st.floats(5, 50))))
    scale = slow * 14 * fast / 1.75 / 2**20  # so that the sizes straddle where the pieces meet
    sizes = [max(1, int(size * scale / 16)) for size in SIZES]
    fit = fit_pieces(rows_of(truth, sizes))
    assert fit.median_error < 0.01
    assert fit.max_error < 0.05


def test_noise_does_not_buy_pieces() -> None:
    noise = np.random.default_rng(7).uniform(0.95, 1.05, len(SIZES))
    rows = with_outliers(rows_of(TWO), dict(enumerate(noise.tolist())))
    fit = fit_pieces(rows)
    assert len(fit.pieces) == 2
    assert fit.outliers == ()


def test_the_same_rows_give_the_same_fit() -> None:
    rows = with_outliers(rows_of(THREE), {4: 1.5})
    assert fit_pieces(rows) == fit_pieces(rows)


def test_a_wide_spread_is_no_outlier() -> None:
    rows = with_outliers(rows_of(TWO), {10: 1.6})
    assert fit_pieces(rows).outliers == (10,)
    rows[10] = Row(rows[10].seconds, rows[10].asks, slack=0.7)
    assert fit_pieces(rows).outliers == ()


@pytest.mark.exhaustive
def test_no_more_than_a_share_is_left_out() -> None:
    factors = dict.fromkeys(range(0, len(SIZES), 2), 3.0)
    fit = fit_pieces(with_outliers(rows_of(ONE), factors))
    assert len(fit.outliers) <= MAX_OUTLIERS * len(SIZES)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_sizes_are_refused_with_the_number_needed(count: int) -> None:
    with pytest.raises(InputError, match="needs at least 4 different ones"):
        fit_pieces(rows_of(ONE, SIZES[:count]) * 5)


def test_a_latency_too_short_to_be_measured_is_none() -> None:
    fit = fit_pieces(rows_of([(1e-10, 1e9)]))
    assert [piece.latency_s for piece in fit.pieces] == [0.0]


def test_few_sizes_get_few_pieces() -> None:
    assert len(fit_pieces(rows_of(TWO, SIZES[::4])).held_out) == 2


def test_names_pair_with_those_inside() -> None:
    assert piece_names(1, ()) == ("simple",)
    assert piece_names(3, ("simple",)) == ("large", "medium", "small")
    inner = ("simple", "ll128", "ll")
    assert piece_names(1, inner) == ("simple",)
    assert piece_names(2, inner) == ("simple", "ll")
    assert piece_names(3, inner) == inner
    assert len(set(piece_names(3, ("large", "medium")))) == 3


def test_a_row_pays_inside_by_the_name_of_its_piece() -> None:
    inside = (("large", Inside(5.0, 0.0)), ("small", Inside(1.0, 30.0)))
    ask = Ask(2, 10.0, 0, Inside(5.0, 0.0), inside)
    table = make_table([Row(1.0, (ask,))], ("large", "small"))
    lines = Lines(np.array([1.0, 0.5]), np.array([1.0, 2.0]), 0.0)
    assert lines.predict(table).tolist() == [5 + 2 + 10]
    assert lines.used(table) == {0}
    tree = Ask(1, 2.0, 2)
    table = make_table([Row(1.0, (tree,))], ("simple",))
    lines = Lines(np.array([2.0]), np.array([4.0]), 0.0)
    assert lines.predict(table).tolist() == [8 + 2 * 2 + (8 * 8 * 2) ** 0.5]
