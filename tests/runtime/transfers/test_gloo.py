"""Transfers on real ranks: every value arrives, staged as planned, and what is broken is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.runtime.numpy_reference import run_transfer_reference
from tests.runtime.transfers.tools import (
    MUTANTS,
    fewer,
    interleaved,
    job_of,
    mutant,
    on_gloo,
    random_job,
    relayed,
    strangers,
)
from tests.tiers import but_the_first


@pytest.mark.cluster
@pytest.mark.parametrize("seed", but_the_first(1, 0, 2, 3, 4, 5))
@pytest.mark.parametrize("buckets", but_the_first(3, 1))
def test_every_value_arrives(tmp_path: Path, seed: int, buckets: int) -> None:
    job = random_job(seed, buckets=buckets)
    reports = on_gloo(job, tmp_path)
    runs = [report.requests[0] for report in reports]
    assert [run.errors for run in runs] == [[]] * job.ranks
    assert all(run.checked for run in runs)
    assert {run.repetitions_checked for run in runs} == {2}
    assert max(run.memory_bytes or 0 for run in runs) == job.staging_bytes


@pytest.mark.cluster
@pytest.mark.parametrize("buckets", [1, 4])
def test_interleaved_uneven_and_replicated_parts_arrive(tmp_path: Path, buckets: int) -> None:
    job = job_of(interleaved(), item_bytes=4, buckets=buckets)
    runs = [report.requests[0] for report in on_gloo(job, tmp_path)]
    assert [run.errors for run in runs] == [[]] * job.ranks
    assert max(run.memory_bytes or 0 for run in runs) == job.staging_bytes


@pytest.mark.cluster
@pytest.mark.parametrize("by", but_the_first(8, 7))
def test_others_pass_on_what_they_neither_have_nor_need(tmp_path: Path, by: int) -> None:
    """A device of neither mesh, or one that needs other tensors alone."""
    whole = job_of(interleaved(), item_bytes=4, buckets=2)
    job = replace(whole, pieces=relayed(whole.pieces, by))
    assert job.ranks == whole.ranks + (by == 8)
    assert run_transfer_reference(job) == []
    runs = [report.requests[0] for report in on_gloo(job, tmp_path)]
    assert [run.errors for run in runs] == [[]] * job.ranks


@pytest.mark.cluster
@pytest.mark.parametrize("buckets", but_the_first(3, 1))
def test_a_plan_by_cards_of_neighbours_stages_as_planned(tmp_path: Path, buckets: int) -> None:
    """Twelve of sixteen devices go on: those who find their parts in the node lend their cards."""
    job = job_of(fewer(), buckets=buckets, relay=True)
    assert strangers(job)
    assert run_transfer_reference(job) == []
    runs = [report.requests[0] for report in on_gloo(job, tmp_path, repeat=1)]
    assert [run.errors for run in runs] == [[]] * job.ranks
    assert max(run.memory_bytes or 0 for run in runs) == job.staging_bytes


@pytest.mark.cluster
@pytest.mark.parametrize("kind", MUTANTS)
def test_ranks_find_a_broken_plan(tmp_path: Path, kind: str) -> None:
    job = mutant(job_of(interleaved(), item_bytes=8), kind)
    errors = [e for report in on_gloo(job, tmp_path, repeat=0) for e in report.requests[0].errors]
    assert errors
    assert any("wrong, the first at [" in error or "is to send" in error for error in errors)
