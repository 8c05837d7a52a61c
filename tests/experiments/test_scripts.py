"""The studies' scripts answer bad arguments in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import but_the_first

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "case",
    but_the_first(
        (
            "placement_448x.model.study",
            ["UNKNOWN"],
            "error: system UNKNOWN: is not one of the study; give one of paper-gcp-a100-4, ",
        ),
        ("tables.convert", [], "error: 0 folders: one is expected or more: those of the texts"),
        ("tables.convert", ["no/such"], "error: file a100-1n8g-allreduce-mleng.txt: is in none of"),
        ("placement_448x.report.draw_figures", ["no/such/folder"], "error: no/such/folder: No su"),
        ("schedule_mutations.table", [], "error: 0 arguments: one is expected: "),
        ("schedule_mutations.table", ["none.json"], "error: none.json: No such file or directory"),
        ("benchmarks.table", ["none.json"], "error: none.json: No such file or directory"),
        ("allocations.study", ["17"], "error: size '17': must be NODES[:SEEDS], of 16, 64, 128"),
        ("allocations.page", ["x"], "error: 1 arguments: none is expected"),
        ("gains.study", ["dgx"], "error: presets ['dgx']: are not among those of p2smt"),
        ("gains.clusters", ["folder"], "error: 1 arguments: none is expected"),
        ("executor.overhead", ["--payload", "many"], "error: --payload"),
        (
            "placement_448x.measure.study",
            ["--cluster", "2x8", "--uplink", "fast", "--out", "x.json"],
            "error: --uplink",
        ),
        ("redistribution.study", ["x"], "error: groups ['x']: are none of dtensor 4x8, "),
        ("redistribution.page", ["x"], "error: 1 arguments: none is expected"),
        ("small_model.study", ["x"], "error: cases ['x']: are none of all-reduce:1:16, "),
        ("small_model.page", ["x"], "error: 1 arguments: none is expected"),
        ("mixture_search.study", ["x"], "error: cases ['x']: are none of dgx-h100:32:usual, "),
        ("mixture_search.page", ["x"], "error: 1 arguments: none is expected"),
        ("crossings.study", ["5"], "error: levels ['5']: must be 2, 3 or 4"),
        ("crossings.page", ["x"], "error: 1 arguments: none is expected"),
        ("published_schedules.study", [], "error: 0 arguments: CLONES [PYTHON] is expected"),
        ("published_schedules.study", ["none"], "error: folder 'none': does not exist"),
        ("published_schedules.page", ["x"], "error: 1 arguments: none is expected"),
        ("schedule_synthesis.compare", ["x"], "error: 1 arguments: MSCCL_TOOLS PYTHON [REPEAT]"),
        ("schedule_synthesis.compare", ["none", "x"], "error: folder 'none': is not a clone of"),
        ("schedule_synthesis.frontier", ["x"], "error: fabric 'x': is none of dgx1, dgx-a100:2, "),
        ("schedule_synthesis.forests", ["x"], "error: 1 arguments: FORESTCOLL PYTHON"),
        ("schedule_synthesis.forests", ["none", "x"], "error: folder 'none': is not a clone of"),
        ("schedule_synthesis.page", ["x"], "error: 1 arguments: none is expected"),
        ("schedule_synthesis.wreaths", ["x"], "error: 1 arguments: none is expected"),
        ("unequal_racks.study", ["--rate", "fast"], "error: --rate"),
        ("unequal_racks.page", ["x"], "error: 1 arguments: none is expected"),
        ("mpi_on_testbed.table", ["x"], "error: 1 arguments: none is expected"),
        ("mpi_on_testbed.predicted", ["x"], "error: 1 arguments: none is expected"),
        (
            "programs_on_testbed.study",
            ["--nodes", "2", "--ranks-per-node", "2", "--rate", "fast", "--out", "x.json"],
            "error: --rate",
        ),
    ),
    ids=lambda case: case[0],
)
def test_bad_arguments(case: tuple[str, list[str], str]) -> None:
    script, arguments, message = case
    command = [sys.executable, "-m", f"experiments.{script}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message), done.stderr
    assert done.stderr.count("\n") == 1
