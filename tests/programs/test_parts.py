"""Programs on groups that levels cut unequally: their slices, their meaning, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, Form, RequestKind
from p2smt.errors import InputError
from p2smt.programs.check import check_program
from p2smt.programs.parts import (
    CutGroup,
    UnevenSlicesError,
    by_size,
    check_on_parts,
    common_hierarchy,
    step_groups,
)
from p2smt.programs.program import (
    Hierarchy,
    Instruction,
    Program,
    groupings,
    local_groups,
    parse_instruction,
    parse_program,
)
from p2smt.programs.semantics import Step, Trace, ViolationKind, run
from tests.oracles.semantics import Literal
from tests.tiers import examples_of

AR, RS, AG, RED, BC = Collective
SWITCH = Link(LinkKind.SWITCH, (Piece("simple", 1e-6, 1e9),))
LEAF, NODE, GPU = ((name, size) for name, size in (("leaf", 3), ("node", 7), ("gpu", 2)))
TOPOLOGY = Topology("hull", tuple(Level(n, s, SWITCH) for n, s in (LEAF, NODE, GPU)))
EVERY_KIND = tuple(kind for kind in RequestKind if kind.has_programs)


def devices(*nodes: int, each: int = 1) -> list[int]:
    """The first devices of the first so many nodes under each leaf."""
    return [
        leaf * 14 + node * 2 + gpu
        for leaf, count in enumerate(nodes)
        for node in range(count)
        for gpu in range(each)
    ]


def cut(*nodes: int, each: int = 1) -> CutGroup:
    return CutGroup.of(TOPOLOGY, devices(*nodes, each=each))


def trace(text: str, *cuts: CutGroup, kind: RequestKind = RequestKind.ALL_REDUCE) -> Trace:
    return check_on_parts(demand_of(kind), cuts, parse_program(text)).trace


def broken(text: str, *cuts: CutGroup, kind: RequestKind = RequestKind.ALL_REDUCE) -> ViolationKind:
    found = trace(text, *cuts, kind=kind).violation
    assert found is not None
    return found.kind


def test_slices_of_unequal_leaves() -> None:
    parts = cut(3, 1, 2)
    found = parts.groups(parse_instruction("reduce inside leaf"))
    assert found == ((0, 1, 2), (4, 5))
    assert parts.groups(parse_instruction("all-reduce master leaf in root")) == ((0, 3, 4),)
    assert [len(slices) for slices in map(parts.slices, range(4))] == [1, 3, 6, 6]
    with pytest.raises(UnevenSlicesError, match="slices of 1, 2, 3 members"):
        parts.groups(parse_instruction("all-reduce parallel leaf in root"))
    with pytest.raises(UnevenSlicesError, match="cuts the payload"):
        parts.groups(parse_instruction("reduce-scatter inside leaf"))


def test_members_are_in_the_order_of_the_communicator() -> None:
    """The first of a slice is the first in that order, whatever the numbers of devices."""
    parts = CutGroup.of(TOPOLOGY, [28, 2, 0, 14, 30])
    assert parts.groups(parse_instruction("broadcast inside leaf")) == ((0, 4), (1, 2))
    assert parts.groups(parse_instruction("all-reduce master leaf in root")) == ((0, 1, 3),)
    group = np.array([[28, 2, 0, 14, 30]])
    found = step_groups([parts], group, parse_instruction("broadcast inside leaf"))
    assert found == ((28, 30), (2, 0))


def test_parallel_pairs_what_is_equal_under_one_entity() -> None:
    """Inside nodes of two devices all is even, and under each leaf alone, too."""
    parts = cut(2, 1, each=2)
    across = parse_instruction("all-reduce parallel node in root")
    assert parts.groups(across) == ((0, 2, 4), (1, 3, 5))
    assert parts.groups(parse_instruction("all-reduce parallel node in leaf")) == ((0, 2), (1, 3))
    assert parts.groups(parse_instruction("reduce-scatter inside node")) == (
        (0, 1),
        (2, 3),
        (4, 5),
    )


@pytest.mark.parametrize(
    "text",
    [
        "all-reduce inside root",
        "reduce inside leaf; all-reduce master leaf in root; broadcast inside leaf",
        "reduce inside leaf; reduce master leaf in root; broadcast inside root",
        "reduce inside node; reduce master node in leaf; all-reduce master leaf in root; "
        "broadcast master node in leaf; broadcast inside node",
        "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node",
        "reduce-scatter inside node; reduce parallel node in root; "
        "broadcast parallel node in root; all-gather inside node",
    ],
)
def test_legal_programs_are_right(text: str) -> None:
    found = trace(text, cut(3, 1, 2, each=2), cut(1, 5, 7, each=2), cut(2, 2, 2, each=2))
    assert found.violation is None
    assert len(found.payload_rows) == len(parse_program(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("reduce-scatter inside leaf; all-gather inside leaf", ViolationKind.UNEVEN_SLICES),
        ("reduce inside leaf; all-gather master leaf in root", ViolationKind.ROWS_OVERLAP),
        ("all-reduce parallel leaf in root; all-reduce inside leaf", ViolationKind.UNEVEN_SLICES),
        ("reduce inside leaf; all-reduce master leaf in root", ViolationKind.GOAL_MISSED),
        ("all-reduce inside leaf; all-reduce inside root", ViolationKind.DOUBLED),
        ("all-reduce inside root; broadcast inside leaf", ViolationKind.AFTER_GOAL),
        ("reduce inside leaf; all-reduce inside leaf", ViolationKind.ROWS_DIFFER),
        ("broadcast inside leaf; reduce-scatter inside leaf", ViolationKind.NOT_CONTAINED),
    ],
)
def test_wrong_programs_break_a_named_rule(text: str, kind: ViolationKind) -> None:
    assert broken(text, cut(3, 1, 2)) is kind


def test_every_group_must_be_right() -> None:
    """A group under one leaf is done before the others' masters meet."""
    text = "all-reduce inside leaf; all-reduce master leaf in root; broadcast inside leaf"
    assert trace(text, cut(3, 1, 2)).violation is None
    assert broken(text, cut(1, 2), cut(3)) is ViolationKind.AFTER_GOAL
    inside = "reduce inside leaf; all-reduce master leaf in root; broadcast inside leaf"
    assert trace(inside, cut(3), cut(1, 2)).violation is None
    found = check_on_parts(
        demand_of(RequestKind.ALL_REDUCE),
        [cut(2, 2), cut(3, 1)],
        parse_program(
            "reduce-scatter inside leaf; all-reduce parallel leaf in root; all-gather inside leaf"
        ),
    )
    assert found.group == 1
    assert found.trace.violation is not None
    assert found.trace.violation.kind is ViolationKind.UNEVEN_SLICES
    assert found.trace.violation.group == (3,)


def test_groups_of_other_shapes_may_end_with_other_chunks() -> None:
    """A plan tells one order of shards for all groups, so such a program is none."""
    text = "reduce-scatter parallel node in root; reduce-scatter inside node"
    one, other = (CutGroup.of(TOPOLOGY, group) for group in ([0, 1, 2, 3], [0, 2, 1, 3]))
    for parts in (one, other):
        assert trace(text, parts, kind=RequestKind.REDUCE_SCATTER).violation is None
    assert broken(text, one, other, kind=RequestKind.REDUCE_SCATTER) is ViolationKind.UNEVEN_SLICES


def test_levels_that_are_not_there_or_join_nothing() -> None:
    parts = [cut(3, 1, 2)]
    group = np.array([devices(3, 1, 2)])
    for text in ("reduce inside rack", "all-reduce master root in leaf", "reduce inside gpu"):
        with pytest.raises(InputError):
            step_groups(parts, group, parse_instruction(text))


def test_levels_that_split_no_group_are_none_of_the_hierarchy() -> None:
    assert common_hierarchy([cut(3, 1, 2)]).factors == (2, 2)
    assert common_hierarchy([cut(3, 1), cut(2, each=2)]).factors == (2, 2, 2)
    assert common_hierarchy([cut(1, 1, 1)]).factors == (2,)
    assert common_hierarchy([cut(3, 1, 2)]).depth_of("gpu") == 2


FACTORS = st.lists(st.integers(2, 3), min_size=1, max_size=3)
INSTRUCTIONS = st.lists(
    st.tuples(st.sampled_from(Collective), st.integers(0, 100)), min_size=1, max_size=4
)


def _topology(sizes: list[int]) -> Topology:
    return Topology("t", tuple(Level(f"l{i + 1}", n, SWITCH) for i, n in enumerate(sizes)))


@settings(max_examples=examples_of(200))
@given(FACTORS, INSTRUCTIONS, st.sampled_from(EVERY_KIND))
def test_on_equal_slices_all_is_as_on_a_matrix(
    factors: list[int], drawn: list[tuple[Collective, int]], kind: RequestKind
) -> None:
    hierarchy = Hierarchy.plain(factors)
    forms = groupings(len(factors))
    chosen = [(collective, forms[n % len(forms)]) for collective, n in drawn]
    program = Program(tuple(hierarchy.instruction(*item) for item in chosen))
    parts = CutGroup.of(_topology(factors), range(int(np.prod(factors))))
    for instruction, (_, grouping) in zip(program.instructions, chosen, strict=True):
        wanted = local_groups(factors, grouping).tolist()
        assert sorted(map(list, parts.groups(instruction))) == sorted(wanted)
    whole = check_program(demand_of(kind), hierarchy, program).trace
    found = check_on_parts(demand_of(kind), [parts], program).trace
    assert (found.violation is None) == (whole.violation is None)
    if whole.violation is None:
        assert found == whole


GROUPS = st.lists(st.integers(0, 41), min_size=2, max_size=9, unique=True)
LEVELS = ("root", "leaf", "node")


def _instruction(collective: Collective, form: Form, outer: int, inner: int) -> Instruction:
    if form is Form.INSIDE_GROUP:
        return Instruction(collective, LEVELS[outer], form)
    return Instruction(collective, LEVELS[max(inner, outer + 1)], form, LEVELS[outer])


DRAWN = st.lists(
    st.builds(
        _instruction,
        st.sampled_from(Collective),
        st.sampled_from(Form),
        st.integers(0, 1),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=examples_of(500))
@given(GROUPS, DRAWN, st.sampled_from(EVERY_KIND))
def test_any_group_agrees_with_sets(
    group: list[int], drawn: list[Instruction], kind: RequestKind
) -> None:
    """The oracle knows sets of chunks alone, and gets its groups from the devices."""
    steps: list[tuple[Collective, list[list[int]]]] = []
    uneven = False
    for instruction in drawn:
        by_hand = _by_hand(group, instruction)
        if by_hand is None:
            uneven = True
            break
        steps.append((instruction.reduction, by_hand))
    every = [_by_hand(group, instruction) for instruction in drawn]
    if any(one is not None and all(len(part) == 1 for part in one) for one in every):
        with pytest.raises(InputError, match="groups of one device"):
            check_on_parts(demand_of(kind), [CutGroup.of(TOPOLOGY, group)], Program(tuple(drawn)))
        return
    broken_at, payloads, model = _literal(kind, len(group), steps)
    found = check_on_parts(
        demand_of(kind), [CutGroup.of(TOPOLOGY, group)], Program(tuple(drawn))
    ).trace
    if uneven and (broken_at is None or broken_at[1] == {ViolationKind.GOAL_MISSED}):
        assert found.violation is not None
        assert found.violation.kind is ViolationKind.UNEVEN_SLICES
        assert found.violation.step == len(steps) + 1
    elif broken_at is not None:
        assert found.violation is not None
        assert found.violation.step == broken_at[0]
        assert found.violation.kind in broken_at[1]
    else:
        assert found.violation is None
        assert list(found.payload_rows) == payloads
        assert model.at_goal()


def _entity(level: str, device: int) -> int:
    return {"root": 0, "leaf": device // 14, "node": device // 2}[level]


def _by_hand(group: list[int], instruction: Instruction) -> list[list[int]] | None:
    """Groups of positions, single ones too; None where slices must be equal and are not."""
    slices: dict[int, list[int]] = {}
    for position, device in enumerate(group):
        slices.setdefault(_entity(instruction.slice, device), []).append(position)
    found = list(slices.values())
    if instruction.form is not Form.INSIDE_GROUP:
        outer: dict[int, list[list[int]]] = {}
        for one in found:
            outer.setdefault(_entity(instruction.ancestor or "", group[one[0]]), []).append(one)
        if instruction.form is Form.MASTER:
            found = [[one[0] for one in meeting] for meeting in outer.values()]
        else:
            if any(len({len(one) for one in meeting}) > 1 for meeting in outer.values()):
                return None
            found = [
                sorted(one[i] for one in meeting)
                for meeting in outer.values()
                for i in range(len(meeting[0]))
            ]
    if instruction.collective in (RS, AG) and len({len(one) for one in found}) > 1:
        return None
    return found


def _literal(
    kind: RequestKind, members: int, steps: list[tuple[Collective, list[list[int]]]]
) -> tuple[tuple[int, set[ViolationKind]] | None, list[int], Literal]:
    """As the oracle has it, step by step: groups of one member do nothing."""
    model, payloads = Literal.start(kind, members), list[int]()
    for number, (collective, every) in enumerate(steps, start=1):
        groups = [one for one in every if len(one) > 1]
        if not groups:
            payloads.append(0)
            continue
        if model.at_goal():
            return (number, {ViolationKind.AFTER_GOAL}), payloads, model
        broken_rules = {kind for one in groups for kind in model.broken(collective, one)}
        if broken_rules:
            return (number, broken_rules), payloads, model
        payloads.append(max(model.payload(collective, [one]) for one in groups))
        for one in groups:
            model.write(collective, one)
    missed = None if model.at_goal() else (len(steps), {ViolationKind.GOAL_MISSED})
    return missed, payloads, model


def test_one_step_has_groups_of_several_sizes() -> None:
    """They are disjoint, whatever their sizes."""
    pairs, three = np.array([[0, 1]]), np.array([[2, 3, 4]])
    demand = demand_of(RequestKind.ALL_REDUCE)
    both = run(demand, 5, [Step(AR, pairs, (three,)), Step(AR, np.array([[0, 1, 2, 3, 4]]))])
    assert both.violation is not None
    assert both.violation.kind is ViolationKind.DOUBLED
    shared = run(demand, 5, [Step(AR, pairs, (np.array([[1, 2, 3]]),))])
    assert shared.violation is not None
    assert shared.violation.kind is ViolationKind.GROUP_SHAPE
    assert shared.violation.group == (1, 2, 3)
    assert [groups.tolist() for groups in by_size([(0, 1), (2, 3, 4), (5, 6)])] == [
        [[0, 1], [5, 6]],
        [[2, 3, 4]],
    ]
