"""The same question has the same answer in every process, whatever the seed of its hashes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2smt.parallelism.placement import IntArray
from p2smt.training.search import prices as placed
from p2smt.training.search.candidates import Seconds
from p2smt.training.search.plan import plan
from tests.interpreter import python
from tests.training.search.test_plan import cluster
from tests.training.search.test_plan_answers import SMALL, started

ALIKE = replace(SMALL, topology=cluster((2, 2, 2), (1e9, 1e9, 1e9)), within=0.5, top=20)
"""Many placements take the same time."""


def answer_text() -> str:
    """An answer where only one class of placements is compared with all others."""
    placed._FRONT = 1
    found = plan(ALIKE)
    best = [(one.strategy, one.matrix, one.iteration_s) for one in found.top]
    return repr((found.status, found.bound_s, found.counts, best, found.near))


def test_prices_are_compared_in_the_order_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds_table, timing = started(ALIKE)
    compared: list[Seconds] = []

    def front(table: Seconds) -> IntArray:
        compared.append(table)
        return np.arange(len(table), dtype=np.int64)

    monkeypatch.setattr(placed, "front", front)
    for row in range(0, len(bounds_table.candidates), 3):  # one block of strategies after another
        timing.pricing.best(np.array([row]))
        at = int(bounds_table.candidates.block[row])
        scenes = timing.pricing.placed(at).scenes
        distinct = dict.fromkeys(timing.pricing.keys(row).values())
        columns = [
            [
                timing.pricing.shared_cache.seconds(int(number), *key[1:])
                for number in scenes[key[0]].each
            ]
            for key in distinct
        ]
        if compared and columns:
            assert compared[-1].T.tolist() == columns
        compared.clear()


@pytest.mark.exhaustive
@pytest.mark.slow
def test_hashes_change_no_answer() -> None:
    code = "from tests.training.search.test_steady import answer_text; print(answer_text())"
    seeds = [{"PYTHONHASHSEED": str(seed)} for seed in range(4)]
    found = {python("-c", code, environment=seed) for seed in seeds}
    assert len(found) == 1
    assert "OPTIMAL" in found.pop()
