"""Transfers as work: runs of elements, values, and what ranks send each other, without torch."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.runtime.numpy_reference import run_transfer_reference
from p2smt.runtime.transfers.transfer_job import box_values, runs_of
from p2smt.runtime.transfers.transfer_rank import rank_share
from p2smt.transfer.classes import volume
from p2smt.transfer.plan import TreePiece
from tests.runtime.transfers.tools import MUTANTS, interleaved, job_of, mutant, random_job

ENDS = st.tuples(st.integers(0, 3), st.integers(1, 4)).map(lambda one: (one[0], sum(one)))


@given(st.lists(ENDS, max_size=3), st.integers(0, 64), st.integers(0, 64))
def test_runs_are_the_elements_in_their_order(
    ends: list[tuple[int, int]], low: int, high: int
) -> None:
    box = tuple(ends)
    every = list(itertools.product(*(range(*one) for one in box)))
    low, high = sorted((min(low, len(every)), min(high, len(every))))
    found = [
        index
        for run in runs_of(box, low, high)
        for index in itertools.product(*(range(*one) for one in run))
    ]
    assert found == every[low:high]


@pytest.mark.parametrize("item_bytes", [1, 2, 4, 8, 16])
def test_values_are_named_by_tensor_index_and_seed(item_bytes: int) -> None:
    shape, whole = (5, 7), ((0, 5), (0, 7))
    values = box_values(shape, whole, 3, item_bytes, 1)
    assert values.shape == (5, 7, item_bytes)
    part = box_values(shape, ((1, 4), (2, 7)), 3, item_bytes, 1)
    assert np.array_equal(part, values[1:4, 2:7])
    for other in (box_values(shape, whole, 4, item_bytes, 1), np.roll(values, 1, axis=0)):
        assert np.mean((other == values).all(axis=-1)) < 0.1
    if item_bytes >= 8:
        assert len(np.unique(values.reshape(35, -1), axis=0)) == 35
    assert not np.array_equal(box_values(shape, whole, 3, item_bytes, 2), values)


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_both_ends_name_messages_in_one_order(seed: int, buckets: int) -> None:
    """And stage together what the plan says, each rank no more."""
    job = random_job(seed, buckets=buckets)
    shares = [rank_share(job, device) for device in job.devices]
    assert all(not share.faults for share in shares)
    sent, taken = Counter[object](), Counter[object]()
    for rank, share in enumerate(shares):
        for bucket, one in enumerate(share.buckets):
            for number, (out, into) in enumerate(one.rounds):
                for peer in range(job.ranks):
                    lengths = [m.stop - m.start for m in out if m.rank == peer]
                    sent[bucket, number, rank, peer, tuple(lengths)] += bool(lengths)
                    lengths = [m.stop - m.start for m in into if m.rank == peer]
                    taken[bucket, number, peer, rank, tuple(lengths)] += bool(lengths)
    assert +sent == +taken
    assert max(share.staged for share in shares) * job.item_bytes == job.staging_bytes


@pytest.mark.parametrize("seed", range(8))
def test_by_definition_all_values_arrive(seed: int) -> None:
    assert run_transfer_reference(random_job(seed)) == []


def test_interleaved_rows_arrive() -> None:
    job = job_of(interleaved(), buckets=2)
    assert run_transfer_reference(job) == []
    assert job.compared == sum(
        volume(box) * len(ranks) for one in job.after.shards.values() for box, ranks in one.boxes
    )


@pytest.mark.parametrize("kind", MUTANTS)
@pytest.mark.parametrize("seed", range(4))
def test_by_definition_a_broken_plan_is_found(seed: int, kind: str) -> None:
    errors = run_transfer_reference(mutant(job_of(interleaved()), kind, seed))
    assert errors
    assert all("of tensor '" in error for error in errors)


def test_who_is_to_send_what_it_has_not_says_so() -> None:
    job = job_of(interleaved())
    faults = [rank_share(mutant(job, "stranger"), device).faults for device in job.devices]
    assert any("is to send element" in fault for found in faults for fault in found)


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        (TreePiece(99, 0, 1, ((0, 1),)), "piece 0 to 1 of class 99: there are"),
        (TreePiece(0, 0, 10**6, ((0, 1),)), "it has"),
        (TreePiece(0, 1, 1, ((0, 1),)), "it has"),
        (TreePiece(0, 0, 1, ((4, 4),)), "device 4 sends it to itself"),
    ],
)
def test_what_is_no_piece_is_refused(piece: TreePiece, said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(job_of(interleaved()), pieces=(piece,))


def test_a_number_has_a_value() -> None:
    assert box_values((), (), 3, 4, 1).shape == (4,)
