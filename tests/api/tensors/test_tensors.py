"""``torch_function`` on four ranks over Gloo: values, gradients, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.imports import ROOT

pytest.importorskip("torch")

SHORT = (
    *("some_pairs", "ranks_not_in_order", "shards_in_other_orders", "uneven_chunks"),
    *("another_order_of_devices", "nothing_moves", "planned_here", "what_is_refused"),
    "rank_0_fails_to_plan",
    *("gradients_of_locals", "gradients_of_dtensors", "gradient_in_another_layout"),
    *("gradients_need_not_be_contiguous", "gradients_that_do_not_exist"),
    *("gradients_of_any_strides", "sums_of_dtensors", "sources_of_any_strides"),
)
ENDING = (
    *("one_rank_has_another_shape", "one_rank_has_another_dtype", "one_rank_is_not_contiguous"),
    "one_gradient_has_another_shape",
)
"""One start of the ranks for all: it takes longer than any of them."""


def run(folder: Path, names: Sequence[str], ranks: int = 4) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.api.tensors.ranks", str(ranks), str(folder), *names],
        capture_output=True,
        text=True,
        timeout=1800,  # longer than a case waits for its ranks
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.exhaustive
def test_on_four_ranks(tmp_path: Path) -> None:
    run(tmp_path, (*SHORT, *ENDING))


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.exhaustive
def test_shards_without_elements_on_several_ranks(tmp_path: Path) -> None:
    run(tmp_path, ["gradients_of_any_strides", "sums_of_dtensors"], ranks=6)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_pair_of_placements(tmp_path: Path) -> None:
    run(tmp_path, ["all_pairs"])
