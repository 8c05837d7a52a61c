"""Redistributions on real ranks: right, within their memory, and wrong where they must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from p2smt.errors import BackendError, InputError
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import ArrayState
from p2smt.resharding.steps import ArrayStep, StepKind, pack_bytes
from p2smt.resharding.types import Uneven
from p2smt.runtime.arrays.moves import ArrayGroups, run_steps
from p2smt.runtime.arrays.rank_steps import ArrayJob, rank_steps
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks.run_arrays import ArrayRunResult, run_arrays
from tests.runtime.arrays.tools import ends, job, through, walk
from tests.tiers import but_every, but_the_first

Dims = tuple[tuple[int, ...], ...]
MIXED, TURNED = (3, 1, 0, 2, 7, 6, 5, 4), (3, 1, 0, 2)
WALKS: list[tuple[Ends, int, bool]] = [
    (ends("a=2,b=2", (8, 10), "R,S(b);P(a,max)", "R,R", dtype="f64", devices=TURNED), 9, True),
    (ends("a=2,b=4", (64, 80), "R,S(b);P(a,max)", "R,R", dtype="f64", devices=MIXED), 3, True),
    (ends("a=2,b=3", (70, 11), "S(a),R;P(b)", "R,R", uneven=Uneven.NESTED), 1, True),
    (ends("a=2,b=4", (64, 64), "S(a),S(b)", "R,R", dtype="bf16", to_devices=MIXED), 5, False),
    (ends("a=2,b=3", (70, 11), "S(a),R;P(b)", "S(b),R", uneven=Uneven.PADDED), 2, False),
    (ends("a=2,b=3", (7, 4), "R,R;P(a);P(b)", "S(a,b),R", uneven=Uneven.NESTED), 4, True),
    (ends("a=3,b=2", (12, 12), "R,R;P(a,avg);P(b,avg)", "R,R", dtype="bf16"), 1, False),
    (ends("a=4,b=2", (3, 2), "S(b),R;P(a)", "R,R", uneven=Uneven.NESTED), 2, True),
    (ends("a=2,b=2", (8, 8), "R,R;P(a,product)", "R,R", dtype="i32"), 4, True),
    (ends("a=2,b=2", (8, 8), "S(b),R;P(a)", "R,R", dtype="bool"), 4, True),
    (ends("a=2,b=2", (8, 8), "S(b),R;P(a,min)", "R,R", dtype="u8"), 6, True),
    (ends("a=2,b=2", (8, 8), "S(b),S(a)", "R,R", dtype="i16"), 6, True),
]


def on_gloo(one: ArrayJob, **more: object) -> ArrayRunResult:
    chosen: dict[str, object] = {"time_limit_s": 600.0, "repeat": 2, **more}
    found = run_arrays(one, RunOptions(**chosen))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("case", but_every(2, WALKS))
def test_walks_are_right_and_keep_to_their_memory(case: tuple[Ends, int, bool]) -> None:
    found, seed, keep = case
    steps = walk(found.frame, found.source, 5, seed)
    one = job(found.frame, found.source, steps, keep_source=keep)
    result = on_gloo(one)
    assert result.errors == ()
    assert result.verified
    assert result.float_checked == (one.reduces and found.frame.element.floating)
    assert result.repetitions_checked == 2
    assert [len(times.samples) for times in (result.total, *result.steps)] == [2] * (1 + len(steps))
    assert result.memory_bytes is not None
    if found.frame.nested:  # the largest blocks of a step may be on no rank together
        assert result.memory_bytes <= result.predicted_bytes
    else:
        copied = max(map(found.frame.local_bytes, _reduced_in_place(found, steps)), default=0)
        extra = result.memory_bytes - result.predicted_bytes
        assert extra in range(copied + 1)


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize(
    "path",
    but_the_first(
        ("S(a),R", ("all-to-all", ((), (0,))), ("all-gather", ((), ()))),
        ("R,R;P(a)", ("reduce-scatter", ((0,), ())), ("all-gather", ((), ()))),
        ("R,R;P(a)", ("reduce-scatter", ((), (0,))), ("all-to-all", ((0,), ()))),
        ("R,R", ("slice", ((0,), ())), ("all-gather", ((), ()))),
    ),
)
def test_ranks_may_have_nothing(path: tuple[str, *tuple[tuple[str, Dims], ...]]) -> None:
    """Two rows and one column over four ranks."""
    source, *steps = path
    found = ends("a=4", (2, 1), source, "S(a),R", uneven=Uneven.NESTED)
    moves = [(kind, ArrayState(dims)) for kind, dims in steps]
    result = on_gloo(job(found.frame, found.source, through(found, *moves)))
    assert result.errors == ()
    assert result.verified
    assert result.memory_bytes is not None
    assert result.memory_bytes <= result.predicted_bytes


def _reduced_in_place(found: Ends, steps: Sequence[ArrayStep]) -> list[ArrayState]:
    """What is reduced where its parts follow each other: Gloo copies it."""
    return [
        step.before
        for step in steps
        if step.kind is StepKind.REDUCE_SCATTER and pack_bytes(found.frame, step) == 0
    ]


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.parametrize("dims", [((0,), ()), ((), (0,))])
def test_a_nested_reduce_scatter_needs_what_is_told(dims: tuple[tuple[int, ...], ...]) -> None:
    found = ends("a=2", (5, 4), "R,R;P(a)", "S(a),R", uneven=Uneven.NESTED)
    steps = through(found, ("reduce-scatter", ArrayState(dims)))
    result = on_gloo(job(found.frame, found.source, steps), repeat=0)
    assert result.verified
    assert result.memory_bytes == result.predicted_bytes


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
def test_a_block_from_another_rank_is_found() -> None:
    found = ends("a=2", (4, 8), "S(a),R", "S(a),R", to_devices=(1, 0))
    one = job(found.frame, found.source, through(found, ("permute", found.target)))
    assert one.sources == ((1, 0),)
    result = on_gloo(replace(one, sources=((1, 1),)), repeat=0)
    assert not result.verified
    (error,) = result.errors
    assert error.startswith("rank 1: 16 elements are wrong, the first at (0, 0) of the array: ")


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.parametrize(("dims", "copied"), [(((0,), ()), 1), (((), (0,)), 0)])
def test_gloo_copies_what_it_reduces_in_parts(
    dims: tuple[tuple[int, ...], ...], copied: int
) -> None:
    """Where the parts follow each other there is no pack buffer that it could overwrite."""
    found = ends("a=2,b=2", (8, 8), "R,R;P(a)", "R,R")
    steps = through(found, ("reduce-scatter", ArrayState(dims)))
    result = on_gloo(job(found.frame, found.source, steps), repeat=0)
    assert result.verified
    source_bytes = found.frame.local_bytes(found.source)
    assert result.memory_bytes == result.predicted_bytes + copied * source_bytes


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_what_a_library_does_not_reduce_is_said() -> None:
    found = ends("a=2", (4,), "R;P(a)", "R", dtype="i16")
    steps = through(found, ("all-reduce", found.target))
    with pytest.raises(BackendError, match="gloo: reduces no int16"):
        on_gloo(job(found.frame, found.source, steps))


def _one_step() -> ArrayJob:
    found = ends("a=2,b=2", (4, 8), "S(a),R", "R,R")
    return job(found.frame, found.source, through(found, ("slice", ArrayState(((0, 1), ())))))


@pytest.mark.parametrize(
    ("local", "rule"),
    [
        (torch.zeros(8, 2).T, "must be contiguous; call contiguous"),
        (torch.zeros(8, 2), r"of shape \(8, 2\): step slice takes \(2, 8\) on rank 3"),
    ],
)
def test_other_local_tensors_are_refused(local: torch.Tensor, rule: str) -> None:
    one = _one_step()
    steps = rank_steps(one.frame, one.steps, one.sources, 3)
    with pytest.raises(InputError, match=rule):
        run_steps(local, steps, ArrayGroups())


def test_a_slice_is_a_copy_and_no_steps_are_none() -> None:
    one = _one_step()
    local = torch.arange(16.0).view(2, 8)
    found = run_steps(local, rank_steps(one.frame, one.steps, one.sources, 3), ArrayGroups())
    assert torch.equal(found, local[1:])
    assert found.untyped_storage().nbytes() == 32
    assert run_steps(local, (), ArrayGroups()) is local


def test_members_are_in_the_order_of_positions() -> None:
    found = ends("a=2,b=2", (4, 8), "S(b,a),R", "R,R", devices=(3, 1, 0, 2))
    (step,) = through(found, ("all-gather", found.target))
    assert step.groups(found.frame) == ((3, 1, 0, 2),)
    (own,) = rank_steps(found.frame, [step], [()], 2)
    assert (own.members, own.place, own.index) == ((3, 1, 0, 2), (1, 1), 3)
    assert own.lost == ((1, 0), ())


def test_a_torch_that_sorts_ranks_makes_the_groups_that_ascend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(torch.distributed, "new_group", lambda ranks: asked.append(ranks))
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    ArrayGroups().make([(0, 2), (1, 3)])
    assert asked == [[0, 1, 2, 3], [0, 2], [1, 3]]
    with pytest.raises(BackendError, match=r"ranks \[2, 0\]: torch .* sorts the ranks of a group"):
        ArrayGroups().make([(2, 0)])
