"""The six steps: each rule tripped, each text, and what random steps keep."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from p2smt.errors import InputError
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import (
    KINDS,
    AllGather,
    AllReduce,
    AllToAll,
    ArrayStep,
    LocalSlice,
    Permute,
    ReduceScatter,
    StepKind,
)
from p2smt.resharding.types import Uneven
from tests.resharding.types import first_ends
from tests.strategies.redistributions import ArrayScene, array_scenes, random_state, random_step
from tests.tiers import examples_of

FRAME = first_ends("a=4,b=2,c=3", (48, 48), "R,R", "R,R").frame  # digits: a 0 1, b 2, c 3


def at(*dims: tuple[int, ...], partial: tuple[int, ...] = (), order: int = 0) -> ArrayState:
    return ArrayState(dims, partial, order)


@pytest.mark.parametrize(
    ("step", "text", "moved"),
    [
        (LocalSlice(at((0,), ()), at((0, 1), ())), "slice dim 0 by a:(2)2", (1,)),
        (LocalSlice(at((), ()), at((0, 1), (2,))), "slice dim 0 by a, dim 1 by b", (0, 1, 2)),
        (
            AllGather(at((0, 1), (2,)), at((), ())),
            "all-gather a from dim 0, b from dim 1",
            (0, 1, 2),
        ),
        (AllGather(at((0, 1), (2,)), at((0,), (2,))), "all-gather a:(2)2 from dim 0", (1,)),
        (AllToAll(at((0, 1), ()), at((), (0, 1))), "all-to-all a from dim 0 to dim 1", (0, 1)),
        (
            AllToAll(at((0, 1), ()), at((), (1, 0))),
            "all-to-all a from dim 0 to dim 1 as a:(2)2,a:(1)2",
            (0, 1),
        ),
        (
            AllToAll(at((2, 0), (3,)), at((2,), (3, 0))),
            "all-to-all a:(1)2 from dim 0 to dim 1",
            (0,),
        ),
        (Permute(at((0, 1), ()), at((1, 0), ())), "permute to S(a:(2)2,a:(1)2),R", (0, 1)),
        (Permute(at((0,), ()), at((2,), ())), "permute to S(b),R", (0, 2)),
        (
            ReduceScatter(at((0,), (), partial=(1, 2)), at((0, 2), (1,))),
            "reduce-scatter b to dim 0, a:(2)2 to dim 1",
            (1, 2),
        ),
        (
            AllReduce(at((), (), partial=(0, 1, 2)), at((), (), partial=(2,))),
            "all-reduce a",
            (0, 1),
        ),
    ],
)
def test_steps_say_what_they_do(step: ArrayStep, text: str, moved: tuple[int, ...]) -> None:
    step.check(FRAME)
    assert step.text(FRAME) == text
    assert step.moved == moved


def test_an_all_to_all_between_three_dimensions_says_who_takes_what() -> None:
    frame = first_ends("a=4,b=2", (16, 16, 16), "R,R,R", "R,R,R").frame
    step = AllToAll(at((0, 1), (), ()), at((), (0,), (1,)))
    step.check(frame)
    text = "all-to-all a from dim 0; a:(1)2 to dim 1, a:(2)2 to dim 2"
    assert step.text(frame) == text


def test_a_permute_to_other_devices_says_so() -> None:
    frame = two_orders()
    step = Permute(at((0,), ()), at((0,), (), order=1))
    step.check(frame)
    assert step.text(frame) == "permute to S(a),R on the destination's devices"


def test_groups_are_the_devices_that_differ_in_what_moves() -> None:
    frame = two_orders()
    gather = AllGather(at((0,), (), order=1), at((), (), order=1))
    assert gather.groups(frame) == ((0, 1), (2, 3))
    assert AllGather(at((0,), ()), at((), ())).groups(frame) == ((0, 2), (1, 3))
    assert AllGather(at((1,), ()), at((), ())).groups(frame) == ((0, 1), (2, 3))
    assert LocalSlice(at((), ()), at((0,), ())).groups(frame) == ()
    assert Permute(at((0,), ()), at((1,), ())).groups(frame) == ()


def two_orders() -> Frame:
    base = first_ends("a=2,b=2", (4, 4), "R,R", "R,R").frame
    return Frame(base.mesh, base.digits, ((0, 1, 2, 3), (0, 2, 1, 3)), (4, 4), base.element)


ORDER = "only a permute changes the order of devices"
ENDS = "digits join at the end of a list"
LEAVE = "digits leave the end of a list"
STAY = "partial digits stay"
NOTHING = "moves nothing"
P1 = (1,)


@pytest.mark.parametrize(
    ("kind", "before", "after", "rule"),
    [
        (StepKind.SLICE, at((0,), ()), at((1, 0), ()), ENDS),
        (StepKind.SLICE, at((0,), ()), at((), ()), ENDS),
        (StepKind.SLICE, at((), ()), at((), ()), NOTHING),
        (StepKind.SLICE, at((), (), partial=P1), at((0,), ()), STAY),
        (StepKind.SLICE, at((), (), partial=P1), at((1,), ()), STAY),
        (StepKind.ALL_GATHER, at((0, 1), ()), at((1,), ()), LEAVE),
        (StepKind.ALL_GATHER, at((0,), ()), at((0, 1), ()), LEAVE),
        (StepKind.ALL_GATHER, at((0,), ()), at((0,), ()), NOTHING),
        (StepKind.ALL_GATHER, at((0,), (), partial=P1), at((), ()), STAY),
        (StepKind.ALL_TO_ALL, at((0, 1), (2,)), at((0, 2), (1,)), "only loses digits at its end"),
        (StepKind.ALL_TO_ALL, at((0, 1), ()), at((1,), (0,)), "only loses digits at its end"),
        (StepKind.ALL_TO_ALL, at((0, 1), ()), at((0,), ()), "every digit that leaves"),
        (StepKind.ALL_TO_ALL, at((0,), ()), at((), (1,)), "every digit that leaves"),
        (StepKind.ALL_TO_ALL, at((0,), ()), at((0,), ()), NOTHING),
        (StepKind.ALL_TO_ALL, at((0,), (), partial=P1), at((), (0,)), STAY),
        (StepKind.PERMUTE, at((0,), ()), at((0,), ()), NOTHING),
        (StepKind.PERMUTE, at((0,), ()), at((3,), ()), "the local shape stays"),
        (StepKind.PERMUTE, at((0,), ()), at((), (0,)), "the local shape stays"),
        (StepKind.PERMUTE, at((0,), (), partial=P1), at((2,), ()), STAY),
        (StepKind.PERMUTE, at((0,), (), partial=P1), at((2,), (), partial=(3,)), STAY),
        (StepKind.REDUCE_SCATTER, at((0,), (), partial=P1), at((1, 0), ()), ENDS),
        (StepKind.REDUCE_SCATTER, at((), (), partial=P1), at((), ()), "every reduced digit shards"),
        (
            StepKind.REDUCE_SCATTER,
            at((), (), partial=P1),
            at((2,), ()),
            "every reduced digit shards",
        ),
        (StepKind.REDUCE_SCATTER, at((), ()), at((0,), ()), "every reduced digit shards"),
        (
            StepKind.REDUCE_SCATTER,
            at((), (), partial=P1),
            at((1,), (), partial=(2,)),
            "the other partial digits stay",
        ),
        (StepKind.ALL_REDUCE, at((0,), (), partial=P1), at((), ()), "no digit moves"),
        (StepKind.ALL_REDUCE, at((0,), ()), at((0,), ()), "reduces nothing"),
        (
            StepKind.ALL_REDUCE,
            at((), (), partial=P1),
            at((), (), partial=(2,)),
            "makes nothing partial",
        ),
    ],
)
def test_each_rule_is_named(
    kind: StepKind, before: ArrayState, after: ArrayState, rule: str
) -> None:
    with pytest.raises(InputError, match=rule) as caught:
        KINDS[kind](before, after).check(FRAME)
    assert f"step {kind.value}" in str(caught.value)


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        (at((0,)), "not as many dimensions"),
        (at((0,), (0,)), "once at most"),
        (at((0,), (), partial=(0,)), "once at most"),
        (at((9,), ()), "that the mesh does not have"),
        (at((-1,), ()), "that the mesh does not have"),
        (at((), (), partial=(2, 1)), "its one form"),
        (at((), (), order=1), "its one form"),
        (at((), (), order=-1), "its one form"),
    ],
)
def test_states_have_rules_too(state: ArrayState, rule: str) -> None:
    for kind in StepKind:
        for step in (KINDS[kind](at((), ()), state), KINDS[kind](state, at((), ()))):
            with pytest.raises(InputError, match=rule):
                step.check(FRAME)


def test_a_dimension_divides_by_its_shards() -> None:
    frame = first_ends("a=4,b=3", (4, 12), "R,R", "R,R").frame
    with pytest.raises(InputError, match="does not divide by its shards"):
        LocalSlice(at((), ()), at((2,), ())).check(frame)


@pytest.mark.parametrize("kind", [kind for kind in StepKind if kind is not StepKind.PERMUTE])
def test_only_permutes_change_the_devices(kind: StepKind) -> None:
    with pytest.raises(InputError, match=ORDER):
        KINDS[kind](at((0,), ()), at((0, 1), (), order=1)).check(two_orders())


def test_nested_chunks_move_one_axis_at_a_time() -> None:
    frame = first_ends("a=2,b=2", (5, 4), "S(a),R", "R,R", Uneven.NESTED).frame
    LocalSlice(at((), ()), at((0,), ())).check(frame)
    AllToAll(at((0,), ()), at((), (0,))).check(frame)
    with pytest.raises(InputError, match="one mesh axis at a time"):
        AllGather(at((0, 1), ()), at((), ())).check(frame)
    with pytest.raises(InputError, match="uneven dimension are not permuted"):
        Permute(at((0,), ()), at((1,), ())).check(frame)
    Permute(at((), (0,)), at((), (1,))).check(frame)


@settings(derandomize=True, deadline=None, max_examples=examples_of(300))
@given(array_scenes())
def test_random_steps_keep_what_the_table_says(scene: ArrayScene) -> None:
    """Local bytes: 1/G by slice and reduce-scatter, G by all-gather, else as before."""
    frame, state = scene.frame, random_state(scene.shuffle, scene.frame)
    for _ in range(6):
        step = random_step(scene.shuffle, frame, state)
        if step is None:
            return
        step.check(frame)
        before, after = frame.local_bytes(step.before), frame.local_bytes(step.after)
        ways = frame.ways(step.moved)
        match step.kind:
            case StepKind.SLICE | StepKind.REDUCE_SCATTER:
                assert after * ways == before
            case StepKind.ALL_GATHER:
                assert before * ways == after
            case _:
                assert before == after
        assert step.text(frame).startswith(step.kind.value)
        assert set(step.reduced) == set(step.before.partial) - set(step.after.partial)
        state = step.after


def test_the_base_of_all_steps_has_no_rule() -> None:
    step = ArrayStep.__new__(ArrayStep)
    with pytest.raises(NotImplementedError):
        step._check_rule()
    with pytest.raises(NotImplementedError):
        step.text(FRAME)
