"""Checks the results of a program on one rank against the closed form."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from p2smt.collectives.names import RequestKind
from p2smt.runtime.options import RequestRun, RunOptions
from p2smt.runtime.payload import Array
from p2smt.runtime.programs.closed_form import compare, exact_results, numbers_of, rounded_sum
from p2smt.runtime.programs.prepared import Prepared

_REPLICATED = (RequestKind.ALL_REDUCE, RequestKind.ALL_GATHER)


def check_exact(prepared: Prepared, options: RunOptions, run: RequestRun) -> None:
    """Run on small integers, which every order of additions sums exactly."""
    request, cutting, rank = prepared.request, prepared.cutting, prepared.site.rank
    numbers = numbers_of(request, cutting, options, prepared.site.ranks)
    prepared.set_period(numbers.integers(rank))
    prepared.execute()
    right = exact_results(request, cutting, rank, numbers)
    wrong = compare(request, cutting, rank, prepared.held, prepared.results(), right)
    if wrong is not None and not run.errors:
        run.errors.append(str(wrong))
    run.digest, run.checked = _digest(prepared), True


def check_random(prepared: Prepared, options: RunOptions, run: RequestRun) -> None:
    """Run on random values and compare with sums in float64."""
    request, cutting, rank = prepared.request, prepared.cutting, prepared.site.rank
    numbers = numbers_of(request, cutting, options, prepared.site.ranks)

    def values(of: int) -> Array:
        rounded = torch.from_numpy(numbers.floats(of)).to(prepared.flat.dtype)
        return rounded.to(torch.float64).numpy()

    prepared.set_period(values(rank))
    prepared.execute()
    right, bounds = rounded_sum(request, cutting, rank, values, numbers)
    wrong = compare(request, cutting, rank, prepared.held, prepared.results(), right, bounds)
    if wrong is not None:
        run.errors.append(str(wrong))
    run.random_digest = _digest(prepared)
    run.float_checked = all(bool(np.isfinite(bound).all()) for bound in bounds)


def _digest(prepared: Prepared) -> str:
    """A hash of the result, where every rank of a group must have the same; else ""."""
    if prepared.request.kind not in _REPLICATED or not prepared.held.all():
        return ""
    data = prepared.flat.cpu().view(torch.uint8).numpy()
    return hashlib.blake2b(data.data, digest_size=16).hexdigest()
