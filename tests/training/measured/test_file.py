"""Files of runs: what is read, and what is refused in one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.training.measured.measured_runs import NEEDED, parse_runs, read_runs
from p2smt.training.strategy import Recompute
from tests.refusals import found_or_refusal, refusal
from tests.training.measured.csv_rows import ROW, text_of

RUNS = Path(__file__).resolve().parents[3] / "experiments" / "training_runs" / "runs.csv"


def refused(text: str) -> str:
    """The line that a text is refused with."""
    return refusal(parse_runs, text, "runs.csv")


def test_a_row_becomes_a_run() -> None:
    (run,) = parse_runs(text_of({"precision": "bf16", "sp": "1"}), "runs.csv").runs
    assert (run.name, run.group, run.framework) == ("r0", "k22-a", "megatron")
    assert run.training.model.head_size == 64
    assert (run.training.batch.sequences, run.training.batch.tokens) == (8, 128)
    strategy = run.training.strategy
    assert (strategy.devices, strategy.micro_batch, strategy.dtype) == (8, 2, "bf16")
    assert strategy.sequence_parallel
    assert strategy.recompute is Recompute.FULL
    assert run.counted


@pytest.mark.parametrize(
    ("values", "counted"),
    [
        ({"mbs": ""}, False),
        ({"assumed": "mbs=1 and vpp unknown"}, False),
        ({"assumed": "dp derived"}, False),
        ({"assumed": "full recompute; ddp of torch"}, True),
    ],
)
def test_runs_with_doubtful_strategies_do_not_count(values: dict[str, str], counted: bool) -> None:
    found = parse_runs(text_of(values), "runs.csv")
    assert len(found.counted) == counted
    assert found.runs[0].training.strategy.micro_batch == (2 if "mbs" not in values else 1)


@pytest.mark.parametrize(
    ("values", "sp", "zero"),
    [
        ({"tp": "1", "sp": "1", "zero": "2"}, False, 2),
        ({"tp": "2", "sp": "1", "zero": "2"}, True, 2),
        ({"dp": "1", "cp": "1", "sp": "1", "zero": "2"}, True, 0),
        ({"dp": "1", "cp": "2", "sp": "1", "zero": "2"}, True, 2),
    ],
)
def test_switches_that_a_framework_ignores_are_off(
    values: dict[str, str], sp: bool, zero: int
) -> None:
    (run,) = parse_runs(text_of(values), "runs.csv").runs
    assert (run.training.strategy.sequence_parallel, run.training.strategy.zero) == (sp, zero)
    assert "ZeRO has stages" in refused(text_of(values | {"zero": "4"}))


def test_other_kinds_are_set_aside_by_name() -> None:
    found = parse_runs(text_of({"kind": "moe"}, {"status": "oom", "step_s": ""}, {}), "runs.csv")
    assert [name for name, _ in found.refused] == ["r0", "r1"]
    assert "moe" in found.refused[0][1]
    assert len(found.runs) == 1


def test_a_column_names_the_framework() -> None:
    (run,) = parse_runs(text_of({"group": "ours", "framework": "fsdp"}), "runs.csv").runs
    assert run.framework == "fsdp"
    assert run.names_framework


@pytest.mark.parametrize(
    ("hardware", "framework"), [("a100-80", "megatron"), ("h100", "megatron-core")]
)
def test_runs_that_name_no_framework_are_megatrons(hardware: str, framework: str) -> None:
    (run,) = parse_runs(text_of({"group": "ours", "hardware": hardware}), "runs.csv").runs
    assert run.framework == framework
    assert not run.names_framework
    assert "did you mean 'h100'" in refused(text_of({"group": "ours", "hardware": "h10"}))


@pytest.mark.parametrize("column", NEEDED)
def test_a_missing_column_is_named(column: str) -> None:
    lines = [line.split(",") for line in text_of({}).splitlines()]
    place = lines[0].index(column)
    text = "\n".join(",".join(x for i, x in enumerate(cells) if i != place) for cells in lines)
    assert f"no column {column}" in refused(text)


def test_all_missing_columns_are_named() -> None:
    for text in ("a,b\n1,2\n", ""):
        told = refused(text)
        assert "has none of the columns" in told
        assert told.count(", ".join(NEEDED)) == 1


@pytest.mark.parametrize(
    ("column", "value", "part"),
    [
        ("step_s", "0", "more than 0"),
        ("step_s", "-1", "more than 0"),
        ("step_s", "nan", "more than 0"),
        ("step_s", "soon", "number of seconds"),
        ("step_s", "", "number of seconds"),
        ("layers", "0", "at least 1"),
        ("layers", "4.5", "whole number"),
        ("layers", "9" * 40, "whole number"),
        ("tp", "", "whole number"),
        ("gated", "2", "0 or 1"),
        ("recompute", "some", "none, selective, full"),
        ("heads", "3", "multiple of heads"),
        ("kv_heads", "3", "must divide"),
        ("zero", "4", "stages 0 to 3"),
        ("model", "", "not be empty"),
        ("hardware", "h10", "did you mean 'h100'"),
        ("framework", "nemoo", "did you mean 'nemo'"),
        ("dp", "0", "at least 1"),
        ("gbs", "0", "at least 1"),
    ],
)
def test_a_bad_value_is_refused_with_its_line(column: str, value: str, part: str) -> None:
    line = refused(text_of({}, {column: value}))
    assert part in line
    assert "line 3" in line


def test_broken_tables_are_refused() -> None:
    whole = text_of({})
    assert "cells" in refused(whole + "1,2\n")
    assert "twice" in refused(text_of({}, {"id": "r0"}))
    assert "twice" in refused("id," + whole.replace("\n", "\nx,"))
    assert "no run" in refused(whole.splitlines()[0] + "\n")
    assert "comma-separated" in refused(whole + '"a"b,\n')


def test_the_published_runs_are_read() -> None:
    found = read_runs(str(RUNS))
    assert (len(found.runs), len(found.refused)) == (299, 1)
    doubtful = {run.group.split("-")[0] for run in found.runs if not run.counted}
    assert doubtful == {"mlm24", "llama3", "sc21t2"}
    assert len(found.counted) == 299 - 8 - 3


def test_the_row_of_these_tests_is_whole() -> None:
    assert set(NEEDED) <= set(ROW)


@given(st.integers(0, 10_000), st.text(max_size=3), st.integers(0, 4))
def test_mutated_files_are_read_or_refused_in_a_line(place: int, text: str, cut: int) -> None:
    whole = text_of({}, {"group": "mpt-a", "hardware": "h100"})
    place %= len(whole)
    found, _ = found_or_refusal(parse_runs, whole[:place] + text + whole[place + cut :], "runs.csv")
    assert found is None or (found.runs and all(run.step_s > 0 for run in found.runs))
