"""The reference executor on walks through all states, and what it finds wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import ArrayState
from p2smt.resharding.types import Uneven
from p2smt.runtime.arrays.rank_steps import ArrayJob
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks.run_arrays import ArrayRunResult, run_arrays
from tests.runtime.arrays.tools import ends, job, through, walk

FRAMES = (
    ends("a=2,b=2", (4, 8), "S(a),S(b)", "R,R"),
    ends("a=2,b=4", (8, 8), "S(a),R;P(b)", "R,R", devices=(3, 1, 0, 2, 7, 6, 5, 4)),
    ends("a=3,b=2", (6, 12), "R,R;P(a,avg);P(b,avg)", "R,R", dtype="bf16"),
    ends("a=2,b=3", (7, 5), "S(a),R;P(b)", "R,R", uneven=Uneven.NESTED),
    ends("a=2,b=3", (7, 5), "S(a),S(b)", "S(b),R", uneven=Uneven.PADDED),
    ends("a=2,b=4", (3, 2), "R,S(b);P(a)", "R,R", uneven=Uneven.NESTED),
    ends("a=4", (2, 1), "S(a),R", "R,R", uneven=Uneven.PADDED),
    ends("a=2,b=2", (4,), "S(a)", "S(b)", to_devices=(3, 2, 0, 1)),
    ends("a=2,b=2", (8, 8), "R,S(b);P(a)", "R,R", dtype="bool"),
)


def on_reference(one: ArrayJob) -> ArrayRunResult:
    found = run_arrays(one, RunOptions(backend="reference"))
    assert found is not None
    return found


@pytest.mark.parametrize("found", FRAMES)
@given(seed=st.integers(0, 2**20), length=st.integers(0, 6))
def test_every_walk_is_right(found: Ends, seed: int, length: int) -> None:
    steps = walk(found.frame, found.source, length, seed)
    result = on_reference(job(found.frame, found.source, steps))
    assert result.errors == ()
    assert result.verified


def _permuting() -> ArrayJob:
    found = FRAMES[0]
    return job(found.frame, found.source, through(found, ("permute", ArrayState(((1,), (0,))))))


def test_a_permute_from_others_is_wrong() -> None:
    one = _permuting()
    (sources,) = one.sources
    swapped = (sources[1], sources[0], *sources[2:])
    assert on_reference(one).verified
    assert on_reference(replace(one, sources=(swapped,))).errors == (
        "rank 0: its block is wrong",
        "rank 1: its block is wrong",
    )


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"sources": ((0, 1, 2),)}, "each of the 4 devices needs one"),
        ({"sources": ((0, 1, 2, 4),)}, "each of the 4 devices needs one"),
        ({"start": ArrayState(((), ()))}, "step 1: does not begin where"),
    ],
)
def test_jobs_that_are_none(change: dict[str, object], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        replace(_permuting(), **change)  # type: ignore[arg-type]


def test_a_step_against_its_rule_is_no_job() -> None:
    found = FRAMES[0]
    with pytest.raises(InputError, match="digits leave the end of a list"):
        job(found.frame, found.source, through(found, ("all-gather", ArrayState(((1,), ())))))


def test_devices_must_be_ranks() -> None:
    found = ends("a=2", (4,), "S(a)", "R", devices=(1, 2))
    with pytest.raises(InputError, match="must be the ranks 0 to 1"):
        job(found.frame, found.source, ())


def test_more_memory_than_there_is_is_refused() -> None:
    found = ends("a=2", (2**50,), "S(a)", "R")
    with pytest.raises(InputError, match="plan a smaller array"):
        on_reference(job(found.frame, found.source, ()))
