"""Which gradient a plan has, and its plan, without ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.api.tensors import check_memory, source_kept_bytes
from p2smt.errors import InputError
from p2smt.resharding.backward import backward_plan, check_differentiable, starts_in
from p2smt.resharding.types import layout_text
from p2smt.result import Status
from tests.api.tensors.plans import gathered_plan, types


def test_partial_axes_are_replicated_in_gradients() -> None:
    source, target = types("dp=2,tp=2", (4, 8), "S(dp),R;P(tp)", "R,S(dp)")
    found = backward_plan(gathered_plan(source, target))
    assert found.source == target
    assert layout_text(found.target.layout, found.target.mesh) == "S(dp),R"
    assert found.status is Status.OPTIMAL


def test_a_partial_destination_has_a_replicated_gradient() -> None:
    source, target = types("dp=2,tp=2", (4, 8), "S(dp),R;P(tp)", "R,S(dp);P(tp)")
    found = backward_plan(gathered_plan(source, target))
    assert layout_text(found.source.layout, found.source.mesh) == "R,S(dp)"


def test_a_gradient_may_come_in_another_layout() -> None:
    source, target, other = types("dp=2,tp=2", (4, 8), "S(dp),R", "R,S(dp)", "R,R;P(tp)")
    found = backward_plan(gathered_plan(source, target), other)
    assert (found.source, found.target) == (other, source)


def test_a_cap_of_steps_holds_backwards() -> None:
    source, target = types("dp=2,tp=2", (4, 8), "S(dp),R", "R,S(dp)")
    plan = gathered_plan(source, target)
    capped = replace(plan, memory=replace(plan.memory, limit_bytes=384, of_steps=True))
    assert backward_plan(capped).peak_step_bytes <= 384
    low = replace(plan, memory=replace(plan.memory, limit_bytes=127, of_steps=True))
    with pytest.raises(InputError, match="memory"):
        backward_plan(low)


def test_a_source_that_is_kept_is_kept_backwards() -> None:
    source, target = types("dp=2,tp=2", (4, 8), "S(dp),R", "R,S(dp)")
    plan = gathered_plan(source, target)
    for keep_source in (False, True):
        limit = replace(plan.memory, limit_bytes=512, of_steps=True, keep_source=keep_source)
        found = backward_plan(replace(plan, memory=limit))
        assert found.memory == limit
        assert found.peak_step_bytes <= 512


def test_backward_steps_are_as_few_where_they_can_be() -> None:
    """To sum and to gather takes more than one step, whatever the plan was allowed."""
    source, target, other = types("dp=2,tp=2", (4, 8), "R,R", "S(dp),R", "R,S(dp);P(tp)")
    plan = replace(gathered_plan(source, target), max_steps=1)
    found = backward_plan(plan)
    assert (len(found.steps), found.max_steps) == (1, 1)
    found = backward_plan(plan, other)
    assert len(found.steps) > 1
    assert found.max_steps is None


def test_a_cap_that_only_a_lost_source_keeps_to_is_refused() -> None:
    """Blocks of 128 bytes, gathered to 256 and cut again: 384 a step, with the source 512."""
    source, target = types("dp=2,tp=2", (4, 8), "S(dp),R", "R,S(dp)")
    plan = gathered_plan(source, target)
    assert (plan.peak_step_bytes, source_kept_bytes(plan)) == (384, 512)
    for limit_bytes, of_steps in ((511, False), (512, True)):
        memory = replace(plan.memory, limit_bytes=limit_bytes, of_steps=of_steps)
        check_memory(replace(plan, memory=memory))
    capped = replace(plan, memory=replace(plan.memory, limit_bytes=511, of_steps=True))
    with pytest.raises(InputError, match=r"takes 512 B .* cap of 511 B; plan with --keep-source"):
        check_memory(capped)


@pytest.mark.parametrize("op", ["max", "min", "product", "avg"])
def test_only_sums_have_gradients(op: str) -> None:
    source, target = types("dp=2,tp=2", (4, 8), f"S(dp),R;P(tp,{op})", "R,S(dp)")
    with pytest.raises(InputError, match=f"autograd through partial values by {op}"):
        check_differentiable(gathered_plan(source, target).source)


def test_whole_numbers_have_no_gradient() -> None:
    source, target = types("dp=2,tp=2", (4, 8), "S(dp),R", "R,S(dp)", dtype="i32")
    with pytest.raises(InputError, match="array of i32: has no gradient"):
        backward_plan(gathered_plan(source, target))


def test_parts_of_an_axis_are_written_as_one() -> None:
    source, target = types("a=4", (4, 8), "S(a:(1)2,a:(2)2),R", "R,S(a)")
    found = starts_in(gathered_plan(source, target))
    assert layout_text(found.layout, found.mesh) == "S(a),R"
