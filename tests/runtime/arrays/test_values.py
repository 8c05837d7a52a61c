"""Known values: exact in their type whatever the grouping, and different where it matters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import ArrayState
from p2smt.resharding.types import ElementType, ReduceOp
from p2smt.runtime.arrays.array_rank import RankArrays, torch_type
from p2smt.runtime.arrays.block_values import ArrayValues
from tests.runtime.arrays.tools import ends

CPU = torch.device("cpu")
CASES = [
    (element, op)
    for element, op in itertools.product(ElementType, ReduceOp)
    if op is not ReduceOp.AVG or element.floating
]


def _partial(op: str, dtype: str, mesh: str = "a=3,b=4") -> tuple[Ends, ArrayValues]:
    found = ends(mesh, (8, 8), f"R,R;P(a,{op});P(b,{op})", "R,R", dtype=dtype)
    return found, ArrayValues.of(found.frame, found.source, found.target, 0)


@pytest.mark.parametrize(("element", "op"), CASES, ids=lambda value: value.value)
def test_a_reduction_in_the_type_is_exact_in_any_order(element: ElementType, op: ReduceOp) -> None:
    found, values = _partial(op.value, element.value)
    right = values.integers(found.target, 0)
    parts = [
        torch.from_numpy(values.integers(found.source, device)).to(torch_type(element))
        for device in range(12)
    ]
    for order in (range(12), range(11, -1, -1)):
        wide = _in_type([parts[i] for i in order], op)
        assert values.exact
        assert torch.equal(wide.to(torch.float64), torch.from_numpy(right).to(torch.float64))


def _in_type(parts: list[torch.Tensor], op: ReduceOp) -> torch.Tensor:
    """Reduced one after the other in the type itself."""
    truth = parts[0].dtype is torch.bool
    total = parts[0]
    for part in parts[1:]:
        match op:
            case ReduceOp.SUM | ReduceOp.AVG:
                total = total | part if truth else total + part
            case ReduceOp.PRODUCT:
                total = total * part
            case ReduceOp.MIN:
                total = torch.minimum(total, part)
            case ReduceOp.MAX:
                total = torch.maximum(total, part)
    return total / len(parts) if op is ReduceOp.AVG else total


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "u8"])
def test_a_missing_or_doubled_contribution_changes_the_sum(dtype: str) -> None:
    found, values = _partial("sum", dtype)
    for device in range(12):
        assert values.integers(found.source, device).any()


def test_bf16_averages_of_many_odd_ways_have_no_exact_numbers() -> None:
    _, values = _partial("avg", "bf16", "a=27,b=5")
    assert not values.exact
    assert _partial("avg", "bf16")[1].exact


def test_bits_differ_by_place_contribution_and_seed() -> None:
    found = ends("a=2,b=2", (16, 16), "S(a),R;P(b)", "S(a),R", dtype="i64")
    states = found.source, found.source
    every = [
        ArrayValues.of(found.frame, *states, seed).bits(found.source, device)
        for seed in (0, 1)
        for device in range(4)
    ]
    flat = np.concatenate([bits.ravel() for bits in every])
    assert len(np.unique(flat)) == len(flat)


@pytest.mark.parametrize("element", ElementType, ids=lambda element: element.value)
def test_tensors_of_bits_are_told_apart(element: ElementType) -> None:
    found = ends("a=2", (8, 6), "S(a),R", "R,R", dtype=element.value)
    values = ArrayValues.of(found.frame, found.source, found.target, 3)
    arrays = [RankArrays(values, rank, CPU) for rank in (0, 1)]
    source = arrays[0].moved(found.source)
    assert source.dtype is torch_type(element)
    assert arrays[0].wrong_bits(source, source.clone(), found.source) == ""
    wrong = arrays[0].wrong_bits(arrays[1].moved(found.source), source, found.source)
    assert wrong.startswith("rank 0: ")
    assert "of the array: expected" in wrong
    assert "shape" in arrays[0].wrong_bits(source[:1], source, found.source)


@pytest.mark.parametrize("op", ["sum", "avg", "product", "max"])
def test_random_numbers_are_bounded(op: str) -> None:
    found, values = _partial(op, "f32")
    arrays = RankArrays(values, 0, CPU)
    terms = [RankArrays(values, device, CPU).random(found.source) for device in range(12)]
    good = _in_type(terms, ReduceOp.parse(op))
    assert arrays.wrong_random(good, found.target) == ("", True)
    bad = good.clone()
    bad[2, 3] *= 1.001
    wrong, _ = arrays.wrong_random(bad, found.target)
    assert "1 elements are wrong, the first at (2, 3)" in wrong


def test_a_state_in_between_has_the_sum_of_its_part() -> None:
    found, values = _partial("sum", "i64")
    between = ArrayState(found.source.dims, found.source.partial[:1])
    total = sum(values.integers(between, device) for device in (0, 4, 8))
    assert np.array_equal(total, values.integers(found.target, 0))
