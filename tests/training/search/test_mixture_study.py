"""The study of proofs for mixtures: its page is that of its rows, which are proved."""

from __future__ import annotations

from experiments.mixture_search.page import PAGE, page
from experiments.mixture_search.study import CASES, read
from p2smt.training.strategy import parse_strategy


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
