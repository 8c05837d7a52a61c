"""What becomes of the other ranks where one fails and lives on: each of them gets an error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from p2smt.api.tensors import TensorFunction
from p2smt.errors import InputError
from p2smt.resharding.types import Uneven
from tests.api.tensors.cases import as_dtensor, device_mesh, function_of, whole_array
from tests.api.tensors.plans import types

FAILS = 1
PATIENCE_S = 300.0
"""Shorter than the time limit of the process group, which must not be what ends the waiting."""


def function_over_pairs() -> TensorFunction:
    """Two gathers over pairs of ranks, so that no rank talks to all others."""
    source, target = types("dp=2,tp=2", (4, 8), "S(dp,tp),R", "R,R", dtype="f32")
    return function_of(source, target, device_mesh(source))


def every_rank_fails(call: Callable[[], object], first: type[Exception], rule: str) -> None:
    """One rank with an error of its own, the others with one of the library; all live on.

    The error stays alive meanwhile, as in a handler.
    """
    rank = dist.get_rank()
    marks = Path(os.environ["MARKS"])
    with pytest.raises(first if rank == FAILS else RuntimeError) as kept:
        call()
    assert rank != FAILS or rule in str(kept.value)
    (marks / str(rank)).touch()
    end = time.monotonic() + PATIENCE_S
    while len(list(marks.iterdir())) < 4 and time.monotonic() < end:
        time.sleep(0.01)
    assert len(list(marks.iterdir())) == 4, "some rank waits for ever"
    assert not dist.is_initialized()


def one_rank_has_another_shape() -> None:
    rows, function = 1 + (dist.get_rank() == FAILS), function_over_pairs()
    local = torch.ones(rows, 8)
    every_rank_fails(lambda: function.on_local(local), InputError, "takes (1, 8) on rank 1")


def one_rank_has_another_dtype() -> None:
    function = function_over_pairs()
    local = torch.ones(1, 8, dtype=torch.float64 if dist.get_rank() == FAILS else torch.float32)
    every_rank_fails(lambda: function.on_local(local), InputError, "the plan is for f32")


def one_rank_is_not_contiguous() -> None:
    source, target = types("dp=2,tp=2", (8, 8), "S(dp,tp),R", "R,R")
    function = function_of(source, target, device_mesh(source))
    local = whole_array(function)[:2].clone()
    given = local.t().contiguous().t() if dist.get_rank() == FAILS else local
    kept = as_dtensor(given, source, function.mesh)
    every_rank_fails(lambda: function(kept), InputError, "must be contiguous")


def one_gradient_has_another_shape() -> None:
    """Of an uneven redistribution on all ranks, the way back."""
    source, target = types("a=4", (9,), "R", "S(a)", dtype="f32", uneven=Uneven.NESTED)
    function = function_of(source, target, device_mesh(source))
    wrong = torch.ones({FAILS: 1, 3: 0}.get(dist.get_rank(), 3))
    backward = function.backward
    every_rank_fails(lambda: backward.on_local(wrong), InputError, "takes (3,) on rank 1")


CASES = {
    case.__name__: case
    for case in (
        one_rank_has_another_shape,
        one_rank_has_another_dtype,
        one_rank_is_not_contiguous,
        one_gradient_has_another_shape,
    )
}
"""By their names; each ends the job."""
