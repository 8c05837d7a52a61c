"""What ranks give to a collective, and what each must then have: written from the meaning alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def payload(case: int, rank: int, elements: int) -> Ints:
    """Integers of a rank, other ones for each case."""
    return np.random.default_rng([case, rank]).integers(0, 1000, elements)


def elements_of(kind: str, size: int) -> int:
    """How many elements a rank gives; an all-reduce need not split evenly."""
    return {"all-reduce": 3 * size + 1, "reduce-scatter": 3 * size, "all-to-all": 2 * size}.get(
        kind, 5
    )


def groups_along(sizes: list[int], axes: list[int]) -> list[list[int]]:
    """Ranks (row-major over the sizes) that differ along some axes alone, ascending."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank, at in enumerate(itertools.product(*map(range, sizes))):
        fixed = tuple(c for i, c in enumerate(at) if i not in axes)
        groups.setdefault(fixed, []).append(rank)
    assert len(groups) == math.prod(sizes) // math.prod(sizes[i] for i in axes)
    return list(groups.values())


def sums(given: list[Ints]) -> Ints:
    """Element by element."""
    return np.asarray(np.stack(given).sum(axis=0), dtype=np.int64)


def expected(kind: str, case: int, group: list[int], place: int, elements: int) -> Ints | None:
    """What the member at a place of a group must have; of a reduce-scatter: all parts."""
    given = [payload(case, rank, elements) for rank in group]
    match kind:
        case "all-reduce":
            return sums(given)
        case "reduce-scatter":
            return sums(given).reshape(len(group), -1)
        case "all-gather":
            return np.concatenate(given)
        case "all-to-all":
            return np.concatenate([one.reshape(len(group), -1)[place] for one in given])
        case "send":
            return given[place - 1] if place else None
    raise AssertionError(kind)
