"""What steps do to index maps: held against arrays whose elements are moved one by one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given

from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.semantics import (
    ArrayViolation,
    ArrayViolationKind,
    StepOrSourced,
    check_result,
    check_types,
    run_steps,
)
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.step_prices import BlockNumbers, StepPrices
from p2smt.resharding.steps import (
    KINDS,
    AllGather,
    AllReduce,
    ArrayStep,
    LocalSlice,
    Permute,
    StepKind,
)
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh
from tests.oracles import array_values
from tests.oracles.redistributions import all_states, all_steps
from tests.strategies.redistributions import (
    ArrayScene,
    array_scenes,
    random_permute,
    random_state,
    random_step,
)

K = ArrayViolationKind


def array_type(
    mesh: str,
    shape: tuple[int, ...],
    layout: str,
    devices: Sequence[int] | None = None,
    uneven: Uneven = Uneven.REFUSE,
) -> ArrayType:
    on = parse_mesh(mesh, devices)
    return ArrayType(on, shape, ElementType.F32, parse_layout(layout, on), uneven)


def ends(
    mesh: str,
    shape: tuple[int, ...],
    source: str,
    target: str,
    devices: Sequence[int] | None = None,
    uneven: Uneven = Uneven.REFUSE,
) -> Ends:
    first = array_type(mesh, shape, source, None, uneven)
    return ends_of(first, array_type(mesh, shape, target, devices, uneven))[0]


FRAMES = {
    "even": ends("a=2,b=4", (4, 8), "S(a),S(b)", "S(b),S(a)"),
    "sixths": ends("a=2,b=3", (6, 6), "S(a),S(b)", "S(b),S(a)"),
    "partial": ends("a=2,b=4", (4, 4), "R,S(a);P(b)", "S(b),S(a)"),
    "all partial": ends("a=2,b=2", (4, 4), "R,R;P(a);P(b)", "R,R;P(b)"),
    "other order": ends("a=2,b=2", (4, 4), "S(a),R", "R,S(a)", [3, 0, 2, 1]),
    "padded": ends("a=2,b=2", (5, 3), "S(a,b),R", "S(a),S(b)", uneven=Uneven.PADDED),
    "nested": ends("a=2,b=2", (5, 3), "S(a,b),R", "S(a),S(b)", uneven=Uneven.NESTED),
    "nested thirds": ends("a=3,b=2", (7, 5), "S(a,b),R", "S(b),S(a)", uneven=Uneven.NESTED),
    "nested partial": ends("a=2,b=2", (5, 3), "S(a),R;P(b)", "S(a),S(b)", uneven=Uneven.NESTED),
    "one dimension": ends("a=2,b=2,c=2", (8,), "S(a,b)", "S(c,a)"),
}


def first_wrong(
    frame: Frame, source: ArrayState, steps: Sequence[StepOrSourced], target: ArrayState
) -> ArrayViolation | None:
    return next(iter(check_result(frame, source, steps, target)), None)


def holds(frame: Frame, source: ArrayState, step: ArrayStep, sources: Sequence[int]) -> bool:
    """Whether a step leaves what its type says, element by element."""
    before = array_values.locals_of(frame, source, step.before)
    try:
        found = array_values.after_step(frame, before, step, sources)
    except ValueError:
        return False
    return array_values.same(found, array_values.locals_of(frame, source, step.after))


@pytest.mark.parametrize("name", FRAMES)
def test_legal_steps_leave_what_their_types_say(name: str) -> None:
    one = FRAMES[name]
    every = [step for some in all_steps(one.frame, one.source.partial).values() for step in some]
    for step in random.Random(name).sample(every, min(len(every), 60)):
        assert first_wrong(one.frame, step.before, [(step, ())], step.after) is None
        if step.kind is not StepKind.PERMUTE and step.before.partial == one.source.partial:
            assert holds(one.frame, one.source, step, ())


@pytest.mark.parametrize("name", FRAMES)
def test_any_step_between_any_states_is_judged_as_element_by_element(name: str) -> None:
    one = FRAMES[name]
    targets = all_states(one.frame, one.source.partial)
    states = [state for state in targets if state.partial == one.source.partial]
    draw = random.Random(name)
    verdicts = []
    for _ in range(150):
        before, kind = draw.choice(states), draw.choice(list(KINDS))
        step = KINDS[kind](before, draw.choice(targets))
        sources = [draw.randrange(one.frame.devices) for _ in range(one.frame.devices)]
        found = first_wrong(one.frame, before, [(step, sources)], step.after)
        if found is not None and found.kind is K.TANGLED:
            continue  # the specification refuses it whatever it does
        assert (found is None) == holds(one.frame, one.source, step, sources), (step, found)
        verdicts.append(found is None)
    assert not all(verdicts)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FRAMES)
def test_every_pair_of_states_and_kind_is_judged_as_element_by_element(name: str) -> None:
    one = FRAMES[name]
    targets = all_states(one.frame, one.source.partial)
    states = [state for state in targets if state.partial == one.source.partial]
    kinds = [kind for kind in KINDS if kind is not StepKind.PERMUTE]  # those have sources
    for before, after, kind in itertools.product(states, targets, kinds):
        step = KINDS[kind](before, after)
        found = first_wrong(one.frame, before, [step], after)
        if found is None or found.kind is not K.TANGLED:
            assert (found is None) == holds(one.frame, one.source, step, ()), (step, found)


def path(one: Ends, *steps: tuple[StepKind, ArrayState]) -> list[tuple[ArrayStep, Sequence[int]]]:
    state = one.source
    found: list[tuple[ArrayStep, Sequence[int]]] = []
    for kind, after in steps:
        found.append((KINDS[kind](state, after), ()))
        state = after
    return found


def test_a_whole_plan_between_two_types() -> None:
    first = array_type("a=2,b=2", (8, 8), "S(a),S(b)")
    last = array_type("a=2,b=2", (8, 8), "S(b),S(a)")
    one = ends_of(first, last)[0]
    plan = path(one, (StepKind.PERMUTE, one.target))
    assert not check_types(first, last, one.frame, one.source, plan)
    assert not isinstance(run_steps(one.frame, one.source, plan), ArrayViolation)


def test_the_types_themselves_are_held_against_the_frame() -> None:
    first = array_type("a=2,b=4", (8, 8), "S(a),S(b:(2)2)")
    last = array_type("a=2,b=4", (8, 8), "R,S(b:(2)2)")
    one = ends_of(first, last)[0]
    plan = path(one, (StepKind.ALL_GATHER, one.target))
    assert not check_types(first, last, one.frame, one.source, plan)
    other = array_type("a=2,b=4", (8, 8), "S(a),S(b:(1)2)")
    found = check_types(other, last, one.frame, one.source, plan)
    assert found == (ArrayViolation(K.ELEMENTS, 0, 1, (1, 4)),)
    (wrong,) = check_types(first, first, one.frame, one.source, plan)
    assert (wrong.kind, wrong.step) == (K.ELEMENTS, 1)
    turned = array_type("a=2,b=4", (8, 8), "S(a),S(b:(2)2)", [7, 6, 5, 4, 3, 2, 1, 0])
    assert check_types(turned, last, one.frame, one.source, plan)


def test_a_frame_on_other_devices() -> None:
    first = array_type("a=2,b=2", (8, 8), "S(a),S(b)", [7, 2, 5, 3])
    last = array_type("a=2,b=2", (8, 8), "S(b),S(a)", [7, 2, 5, 3])
    one = ends_of(first, last)[0]
    step = Permute(one.source, one.target)
    for sources, right in (([5, 3, 2, 7], True), ([2, 3, 5, 7], False), ((), True)):
        found = check_types(first, last, one.frame, one.source, [(step, sources)])
        assert (not found) is right
    low = array_type("a=2,b=2", (8, 8), "S(a),S(b)")
    (broken,) = check_types(low, last, one.frame, one.source, [])
    assert (broken.kind, broken.step) == (K.DEVICES, 0)


@given(array_scenes())
def test_random_walks_of_legal_steps(scene: ArrayScene) -> None:
    """Whatever steps lead anywhere leave what the last type says."""
    frame, draw = scene.frame, scene.shuffle
    prices = StepPrices(scene.topology, frame)
    start = state = random_state(draw, frame)
    moves: list[StepOrSourced] = []
    for _ in range(draw.randint(1, 4)):
        step = random_step(draw, frame, state)
        if step is None:
            break
        step.check(frame)
        permutes = step.kind is StepKind.PERMUTE and draw.random() < 0.8
        moves.append((step, _sources(prices, step)) if permutes else step)
        state = step.after
    assert not check_result(frame, start, moves, state)


def _sources(prices: StepPrices, step: ArrayStep) -> list[int]:
    return [int(device) for device in prices.messages(step.before, step.after)[0]]


@given(array_scenes())
def test_any_sources_of_a_permute(scene: ArrayScene) -> None:
    """Right are those that send each device a block that it must get, and no others."""
    frame, draw = scene.frame, scene.shuffle
    before = random_state(draw, frame)
    step = Permute(before, random_permute(draw, frame, before))
    sources = _sources(StepPrices(scene.topology, frame), step)
    one, other = draw.choices(range(len(sources)), k=2)
    sources[one], sources[other] = sources[other], sources[one]
    blocks = BlockNumbers(frame)
    held = dict(zip(sorted(frame.orders[0]), blocks.of(step.before), strict=True))
    right = [held[device] for device in sources] == list(blocks.of(step.after))
    assert (not check_result(frame, before, [(step, sources)], step.after)) is right


def test_no_step_is_right_only_between_equal_types() -> None:
    one = FRAMES["even"]
    assert first_wrong(one.frame, one.source, [], one.source) is None
    assert first_wrong(one.frame, one.source, [], one.target) is not None


def test_a_wrong_source_of_a_permute_is_named() -> None:
    one = ends("a=2,b=2", (4, 4), "S(a),S(b)", "S(b),S(a)")
    step = Permute(one.source, one.target)
    assert first_wrong(one.frame, one.source, [(step, [0, 2, 1, 3])], one.target) is None
    found = first_wrong(one.frame, one.source, [(step, [0, 2, 2, 3])], one.target)
    assert found == ArrayViolation(K.ELEMENTS, 1, 2, (0, 0))
    assert found.message == (
        "step 1 leaves other elements than its type says: device 2 (at element 0 of dim 0)"
    )
    short = first_wrong(one.frame, one.source, [(step, [0, 2, 1])], one.target)
    far = first_wrong(one.frame, one.source, [(step, [0, 2, 1, 4])], one.target)
    assert short == far == ArrayViolation(K.SOURCES, 1, 0)


def test_a_contribution_that_is_summed_twice() -> None:
    one = ends("a=2,b=2", (4, 4), "R,R;P(a)", "R,R")
    step = AllReduce(ArrayState(((), ()), (0, 1)), ArrayState(((), ())))
    found = first_wrong(one.frame, step.before, [(step, ())], step.after)
    assert found is None
    # the same step where b holds the same contributions: the start says less than the step
    twice = AllReduce(ArrayState(((), ()), (0,)), ArrayState(((), ())))
    assert first_wrong(one.frame, twice.before, [(twice, ())], twice.after) is None
    types = array_type("a=2,b=2", (4, 4), "R,R;P(a)"), array_type("a=2,b=2", (4, 4), "R,R")
    (wrong,) = check_types(*types, one.frame, step.before, [(step, ())])
    assert (wrong.kind, wrong.step) == (K.SUMMED_TWICE, 1)


SQUARE = ("a=2,b=2", (4, 4))


@pytest.mark.parametrize(
    ("one", "step", "kind"),
    [
        (  # values of different elements are not added
            ends(*SQUARE, "S(b),R;P(a)", "S(b),R"),
            AllReduce(ArrayState(((1,), ()), (0, 1)), ArrayState(((1,), ()))),
            K.SUMMED_APART,
        ),
        (  # a contribution is lost
            ends(*SQUARE, "R,R;P(a)", "R,R"),
            LocalSlice(ArrayState(((), ()), (0,)), ArrayState(((0,), ()))),
            K.CONTRIBUTIONS,
        ),
        (  # an inner digit is gathered first
            ends("a=2,b=2", (8, 2), "S(a,b),R", "S(b),R"),
            AllGather(ArrayState(((0, 1), ())), ArrayState(((1,), ()))),
            K.ELEMENTS,
        ),
    ],
)
def test_a_wrong_step(one: Ends, step: ArrayStep, kind: K) -> None:
    found = first_wrong(one.frame, step.before, [(step, ())], step.after)
    assert found is not None
    assert found.kind is kind


def test_steps_that_do_not_follow_each_other() -> None:
    one = FRAMES["even"]
    step = AllGather(one.target, ArrayState(((), (0,))))
    found = first_wrong(one.frame, one.source, [(step, ())], step.after)
    assert found is not None
    assert found.kind is K.SEQUENCE


def test_nested_chunks_of_two_axes_do_not_gather_at_once() -> None:
    one = ends("a=2,b=2", (5,), "S(a,b)", "R", uneven=Uneven.NESTED)
    both = AllGather(one.source, one.target)
    assert first_wrong(one.frame, one.source, [(both, ())], one.target) is None  # in order it is
    back = LocalSlice(one.target, one.source)  # 2,2,1,0 instead of 2,1,1,1
    found = first_wrong(one.frame, one.target, [(back, ())], one.source)
    assert found is not None
    assert found.kind is K.ELEMENTS


@pytest.mark.parametrize("shape", [(8192, 8192), (50257, 1031)])
def test_as_many_devices_as_there_are(shape: tuple[int, int]) -> None:
    uneven = Uneven.REFUSE if shape[0] % 2 == 0 else Uneven.NESTED
    first = array_type("a=64,b=64", shape, "S(a),S(b)", uneven=uneven)
    last = array_type("a=64,b=64", shape, "R,R", uneven=uneven)
    one = ends_of(first, last)[0]
    state, steps = one.source, []
    for after in (ArrayState((one.source.dims[0], ())), one.target):
        steps.append((AllGather(state, after), ()))
        state = after
    assert not check_types(first, last, one.frame, one.source, steps)


@pytest.mark.parametrize(
    ("mesh", "layout"), [("a=1", "S(a),R"), ("a=1,b=1", "S(a),R;P(b)"), ("a=1,b=1", "R,R;P(a)")]
)
def test_one_device_has_everything(mesh: str, layout: str) -> None:
    source, target = array_type(mesh, (4, 3), layout), array_type(mesh, (4, 3), "R,R")
    one = ends_of(source, target)[0]
    assert check_types(source, target, one.frame, one.source, []) == ()
    assert check_result(one.frame, one.source, [], one.target) == ()
