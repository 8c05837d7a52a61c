"""What studies write: times apart from results, and parts of pages between marks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.plan_hosts import bench
from experiments.testbed.written import timings
from experiments.testbed.written.marked import filled
from p2smt.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
TIMED = timings.Timed(Path(), ("cpu_s",), lambda row: str(row["name"]))
STUDIES = sorted(path.parent for path in (ROOT / "experiments").glob("*/timings.json"))


def test_times_stay_unless_they_are_asked_for(tmp_path: Path) -> None:
    timings.keep(tmp_path, {"a": {"s": 1.0}}, anew=False, on="here")
    before = (tmp_path / timings.NAME).read_bytes()
    timings.keep(tmp_path, {"a": {"s": 2.0}}, anew=False, on="there")
    assert (tmp_path / timings.NAME).read_bytes() == before
    timings.keep(tmp_path, {"a": {"s": 3.0}, "b": {"s": 4.0}}, anew=False, on="there")
    assert timings.read(tmp_path) == {"a": {"s": 1.0}, "b": {"s": 4.0}}
    assert timings.measured_on(tmp_path) == "here; there"
    timings.keep(tmp_path, {"a": {"s": 5.0}}, anew=True, on="there")
    assert timings.read(tmp_path) == {"a": {"s": 5.0}, "b": {"s": 4.0}}
    assert timings.measured_on(tmp_path) == "there"


def test_rows_come_apart_and_together(tmp_path: Path) -> None:
    timed = timings.Timed(tmp_path, TIMED.fields, TIMED.key)
    rows = [{"name": "a", "found": 1, "cpu_s": 0.5}, {"name": "b", "found": 2}]
    bare = timed.apart(rows, anew=False)
    assert bare == [{"name": "a", "found": 1}, {"name": "b", "found": 2}]
    assert timed.joined(bare) == rows
    slower = [{**rows[0], "cpu_s": 9.0}, rows[1]]
    assert timed.joined(timed.apart(slower, anew=False)) == rows
    assert timed.joined(timed.apart(slower, anew=True)) == slower


def test_the_flag_is_taken_from_the_arguments() -> None:
    assert timings.taken(["a", timings.FLAG, "b"]) == (["a", "b"], True)
    assert timings.taken(["a"]) == (["a"], False)


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_results_have_none_of_the_times(folder: Path) -> None:
    names = {key for times in timings.read(folder).values() for key in times}
    assert names
    for path in [*folder.glob("*.json"), *folder.glob("computed/*.json")]:
        if path.name != timings.NAME:
            found = path.read_text(encoding="utf-8")
            assert [name for name in names if json.dumps(name) in found] == []


def test_parts_of_pages_are_replaced_between_their_marks() -> None:
    text = "a\n<!-- x: written by y -->\nold\n<!-- x end -->\nb\n"
    assert filled(text, "x", "new\n") == text.replace("old", "new")
    with pytest.raises(InputError, match="needs one pair"):
        filled(text, "z", "new\n")
    with pytest.raises(InputError, match="page with 2 parts"):
        filled(text + text, "x", "new\n")


def test_the_page_of_plans_on_hosts_is_that_of_its_rows() -> None:
    text = bench.PAGE.read_text(encoding="utf-8")
    assert bench.page(text) == text, "run: python -m experiments.plan_hosts.bench"
    keys = [bench.TIMED.key(row) for row in bench.read()]
    assert keys == [f"{case.name}, {ratio}:1" for case in bench.CASES for ratio in case.ratios]


def test_a_row_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = timings.Timed(tmp_path, bench.TIMED.fields, bench.TIMED.key)
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(bench, "TIMED", timed)
    first, second = ({"case": bench.CASES[n].name, "uplinks": "4:1", "cpu_s": 1.0} for n in (0, 1))
    for row in (second, first, {**first, "cpu_s": 2.0}):
        bench.renew(row, anew=False)
    assert bench.read() == [first, second]
