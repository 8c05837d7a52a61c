"""The study of proofs for mixtures: its page is that of its rows, which are proved."""

from __future__ import annotations

import pytest

from experiments.mixture_search.page import PAGE, page
from experiments.mixture_search.study import CASES, MODEL, TOKENS, Case, read
from p2smt.api.workload import estimate, read_model
from p2smt.training.strategy import Batch, parse_strategy


def test_the_page_is_that_of_the_rows() -> None:
    assert page(read().values()) == PAGE.read_text(encoding="utf-8")


def test_every_case_is_there_with_its_proof() -> None:
    rows = read()
    assert tuple(rows) == CASES
    for case, row in rows.items():
        assert (row.status, row.gap) == ("optimal", 0.0)
        assert row.near >= 1
        assert parse_strategy(row.strategy).devices == row.devices
        assert row.evaluated < row.strategies < row.placements
        assert row.levels == {"pods": 3, "islands": 4}.get(case.topology, 2)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_was_best_fits_and_is_no_faster_than_it_can_be(case: Case) -> None:
    """By the formulas of now: ranks in order are one of the pairs of placements."""
    row = read()[case]
    topology = case.cluster()
    found = estimate(read_model(MODEL), topology, row.strategy, Batch(case.sequences, TOKENS))
    assert found.fits
    alone = found.prediction.time
    assert alone.compute_s * (1 - 1e-3) <= row.iteration_s <= found.iteration_s * (1 + 1e-3)
