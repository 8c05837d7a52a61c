"""The table of plans beside pulls on shaped links: times that are told are those of its ways."""

from __future__ import annotations

import pytest

from experiments.transfer.shaped import CASES, ShapedCase, jobs, question, read
from p2smt.transfer.plan import replay


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_told_times_are_those_of_both_ways(case: ShapedCase) -> None:
    asked = question(case)
    rows = {row["way"]: row for row in read() if row["case"] == case.name}
    made = jobs(case)
    assert rows.keys() == made.keys()
    for way, job in made.items():
        seconds = replay(asked.moves, job.pieces, asked.ports, job.item_bytes).bandwidth_s
        assert float(rows[way]["told_s"]) == pytest.approx(float(seconds), abs=5e-4)
        least, median, most = (float(rows[way][f"{of}_s"]) for of in ("least", "median", "most"))
        assert float(rows[way]["told_s"]) <= least <= median <= most


def test_every_case_is_in_the_table() -> None:
    assert [row["case"] for row in read()[::2]] == [case.name for case in CASES]
