"""Bytes of states and steps: the table, the caps, and the theorem of the normal form."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import (
    AllGather,
    AllReduce,
    AllToAll,
    ArrayStep,
    LocalSlice,
    MemoryLimit,
    Permute,
    ReduceScatter,
    StepKind,
    kept_bytes,
    leads,
    pack_bytes,
    peak_bytes,
    peak_step_bytes,
    step_bytes,
    within,
)
from p2smt.resharding.types import Uneven
from tests.resharding.types import first_ends
from tests.strategies.redistributions import (
    ArrayScene,
    array_scenes,
    random_state,
    random_step,
)
from tests.tiers import examples_of

FRAME = first_ends("a=2,b=4", (16, 16), "R,R", "R,R").frame  # digits: a 0, b 1 2; 1024 bytes
WHOLE, HALF = ArrayState(((), ())), ArrayState(((0,), ()))
SECOND = ArrayState(((), (0,)))
PARTIAL = ArrayState(((), ()), (0,))


@pytest.mark.parametrize(
    ("step", "pack", "total"),
    [
        (LocalSlice(WHOLE, HALF), 0, 1024 + 512),
        (AllGather(HALF, WHOLE), 0, 512 + 1024),
        (AllGather(SECOND, WHOLE), 1024, 512 + 1024 + 1024),
        (AllToAll(HALF, SECOND), 512, 3 * 512),
        (Permute(HALF, ArrayState(((1,), ()))), 0, 2 * 512),
        (ReduceScatter(PARTIAL, HALF), 0, 1024 + 512),
        (ReduceScatter(PARTIAL, SECOND), 1024, 1024 + 512 + 1024),
        (AllReduce(PARTIAL, WHOLE), 0, 1024),
    ],
)
def test_the_table(step: ArrayStep, pack: int, total: int) -> None:
    step.check(FRAME)
    assert pack_bytes(FRAME, step) == pack
    assert step_bytes(FRAME, step) == total


def test_blocks_lead_where_only_the_first_long_dimension_is_cut() -> None:
    both = ArrayState(((1, 2), ()))
    assert leads(FRAME, both, ((1, 2), ()))
    assert not leads(FRAME, ArrayState(((2, 1), ())), ((2, 1), ()))
    assert not leads(FRAME, ArrayState(((1,), (2,))), ((1,), (2,)))
    assert not leads(FRAME, ArrayState(((), (1,))), ((), (1,)))
    thin = first_ends("a=2,b=4", (1, 16), "R,R", "R,R").frame
    assert leads(thin, ArrayState(((), (1,))), ((), (1,)))


def test_the_source_may_be_kept() -> None:
    steps = [AllToAll(HALF, SECOND), AllGather(SECOND, WHOLE)]
    assert peak_bytes(FRAME, [HALF, SECOND, WHOLE]) == 1024
    assert peak_step_bytes(FRAME, steps) == 2560
    assert peak_step_bytes(FRAME, steps, keep_source=True) == 2560 + 512
    assert [kept_bytes(FRAME, steps, number) for number in (0, 1)] == [0, 512]
    reduced: list[ArrayStep] = [AllReduce(PARTIAL, WHOLE)]
    assert peak_step_bytes(FRAME, reduced) == 1024
    assert peak_step_bytes(FRAME, reduced, keep_source=True) == 2048
    assert peak_step_bytes(FRAME, []) == 0


def test_caps_bound_states_or_steps() -> None:
    steps = [AllToAll(HALF, SECOND), AllGather(SECOND, WHOLE)]
    for limit, fits in (
        (MemoryLimit(1024), True),
        (MemoryLimit(1023), False),
        (MemoryLimit(2560, of_steps=True), True),
        (MemoryLimit(2559, of_steps=True), False),
        (MemoryLimit(2560, of_steps=True, keep_source=True), False),
        (MemoryLimit(3072, of_steps=True, keep_source=True), True),
    ):
        assert within(FRAME, HALF, steps, limit) is fits
    assert within(FRAME, HALF, [], MemoryLimit(512, of_steps=True))
    assert not within(FRAME, HALF, [], MemoryLimit(511, of_steps=True))
    assert not within(FRAME, HALF, [], MemoryLimit(511))


def test_nested_chunks_count_the_largest() -> None:
    frame = first_ends("a=2,b=2", (5, 3), "S(a),R", "R,R", Uneven.NESTED).frame
    step = AllGather(ArrayState(((0, 1), ())), ArrayState(((0,), ())))
    assert step_bytes(frame, step) == (2 * 3 + 3 * 3) * 4


def test_nested_exchanges_need_the_larger_of_input_and_output() -> None:
    frame = first_ends("a=2", (5, 4), "S(a),R", "R,S(a)", Uneven.NESTED).frame
    rows, columns = ArrayState(((0,), ())), ArrayState(((), (0,)))
    assert pack_bytes(frame, AllToAll(rows, columns)) == 48  # from 3 x 4 to 5 x 2 elements
    assert pack_bytes(frame, AllToAll(columns, rows)) == 48


def test_nested_reduce_scatters_pack_parts_of_one_length() -> None:
    frame = first_ends("a=2", (5, 4), "R,R;P(a)", "S(a),R", Uneven.NESTED).frame
    whole = ArrayState(((), ()), (0,))
    assert step_bytes(frame, ReduceScatter(whole, ArrayState(((0,), ())))) == 80 + 48 + 2 * 48
    assert pack_bytes(frame, ReduceScatter(whole, ArrayState(((), (0,))))) == 80


def normal_form(shuffle: Random, frame: Frame) -> list[ArrayStep]:
    """slice*; (all-to-all or permute)*; gather*, at random."""
    state, steps = random_state(shuffle, frame, ()), list[ArrayStep]()
    for kinds in (
        (StepKind.SLICE,),
        (StepKind.ALL_TO_ALL, StepKind.PERMUTE),
        (StepKind.ALL_GATHER,),
    ):
        for _ in range(shuffle.randint(0, 3)):
            step = random_step(shuffle, frame, state, kinds)
            if step is not None:
                steps.append(step)
                state = step.after
    return steps


@settings(derandomize=True, deadline=None, max_examples=examples_of(300))
@given(array_scenes())
def test_the_normal_form_never_holds_more_than_source_or_destination(scene: ArrayScene) -> None:
    """slice*; (all-to-all or permute)*; gather*: the theorem of arXiv 2112.01075."""
    frame, steps = scene.frame, normal_form(scene.shuffle, scene.frame)
    if steps:
        ends = [steps[0].before, steps[-1].after]
        assert peak_bytes(frame, [steps[0].before, *(step.after for step in steps)]) == peak_bytes(
            frame, ends
        )
        cap = peak_bytes(frame, ends)
        assert within(frame, steps[0].before, steps, MemoryLimit(cap))
        assert peak_step_bytes(frame, steps) <= 3 * cap
