"""The study of allocations: its page says what its data says, and its jobs are answered again."""

from __future__ import annotations

import pytest

from experiments.allocations import page
from experiments.allocations.jobs import SIZES, jobs, leaf_sizes, names
from experiments.allocations.study import COLUMNS, KEYS, RESULTS, chosen, row
from experiments.testbed.written import results

DATA = results.read(RESULTS)
ENTRIES = page.entries(DATA)


def test_the_page_is_that_of_the_results() -> None:
    assert page.PAGE.read_text() == page.page(), "run: python -m experiments.allocations.page"


def test_every_row_is_a_job_and_its_numbers_hold_together() -> None:
    assert DATA["columns"] == list(COLUMNS)
    known = {
        (size.nodes, size.leaves, job.seed, *job.grid, job.weight, job.uplinks)
        for size in SIZES
        for job in jobs(size)
    }
    keys = [tuple(one[:KEYS]) for one in DATA["jobs"]]
    assert set(keys) <= known
    assert len(keys) == len(set(keys))
    for one in ENTRIES:
        assert one["bound_s"] <= one["objective_s"] * (1 + 1e-6)
        assert one["objective_s"] <= page.better(one) * (1 + 1e-6)
        assert one["status"] != "optimal" or page.gap(one) < 1e-5


def test_jobs_come_from_their_seed() -> None:
    assert leaf_sizes(5, 64, 6) == leaf_sizes(5, 64, 6)
    for size in SIZES:
        sizes = leaf_sizes(3, size.nodes, size.leaves)
        assert (sum(sizes), len(sizes)) == (size.nodes, size.leaves)
        assert [len(hosts) for hosts in names(sizes)] == list(sizes)
    assert names((5, 2)) == [["n0000", "n0001", "n0002", "n0003", "n0006"], ["n0004", "n0005"]]


@pytest.mark.exhaustive
def test_committed_optima_hold() -> None:
    for job in chosen(["16:2"])[::5]:
        found = dict(zip(COLUMNS, row(job)[0], strict=True))
        [wanted] = [
            one
            for one, keys in zip(ENTRIES, DATA["jobs"], strict=True)
            if keys[:KEYS] == [found[name] for name in COLUMNS[:KEYS]]
        ]
        if wanted["status"] == found["status"] == "optimal":
            assert found["objective_s"] == pytest.approx(wanted["objective_s"], rel=1e-5)
