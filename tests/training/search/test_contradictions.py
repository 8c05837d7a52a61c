"""What is fixed against limits and rules: it is refused by name, or all of it holds.

Brute force tries every number; it knows of limits and fixed values only what the words say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.parallelism.placement import FixedEntry
from p2smt.training.search.plan import plan
from p2smt.training.search.plan_answer import PlanAnswer
from p2smt.training.search.question import SEARCHED, PlanQuestion, SpaceLimits
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.oracles.strategies import RULES_IN_WORDS
from tests.tiers import examples_of
from tests.training.search.test_plan import cluster
from tests.training.search.test_plan_answers import SMALL

MODEL = Transformer("m", 6, 64, 8, 4, 96, True, 100, 8)
ASKED = replace(SMALL, model=MODEL, batch=Batch(12, 48), space=SpaceLimits(), memory_bytes=10**10)
DEGREES = ("tp", "pp", "dp", "cp", "vpp", "micro_batch")
FIXES: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.sampled_from([1, 1, 2, 3, 4]) for name in DEGREES},
    "sequence_parallel": st.booleans(),
    "zero": st.integers(0, 3),
    "recompute": st.sampled_from(list(Recompute)),
}
LIMITS: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(1, 4) for name in DEGREES if name != "dp"},
    "sequence_parallel": st.sampled_from([(True,), (False,), (False, True)]),
    "zero": st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(tuple),
    "recompute": st.lists(st.sampled_from(list(Recompute)), min_size=1, unique=True).map(tuple),
}
USUAL = {
    "tp": range(1, 5),
    "pp": range(1, 9),
    "dp": range(1, 9),
    "cp": range(1, 33),
    "vpp": range(1, 11),
    "micro_batch": range(1, 17),
    "sequence_parallel": (False, True),
    "zero": range(4),
    "recompute": (Recompute.NONE, Recompute.FULL),
}
"""What is looked at on nodes of four devices where nothing is asked."""


def some_of(each: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Values of at most four of the fields."""
    names = st.lists(st.sampled_from(sorted(each)), max_size=4, unique=True)
    return names.flatmap(lambda found: st.fixed_dictionaries({name: each[name] for name in found}))


def allowed(name: str, fixed: dict[str, Any], limits: dict[str, Any]) -> Sequence[Any]:
    """The values of a field that obey what is fixed, and the limit if there is one."""
    limit = limits.get(name)
    within = range(1, limit + 1) if isinstance(limit, int) else limit
    if name not in fixed:
        return USUAL[name] if within is None else within
    return [fixed[name]] if within is None or fixed[name] in within else []


def tried(devices: int, values: dict[str, Sequence[Any]]) -> Iterator[Strategy]:
    """Every strategy of such values that uses all devices."""
    axes = [[n for n in values[name] if devices % n == 0] for name in ("tp", "pp", "dp", "cp")]
    rest = [values[name] for name in SEARCHED[4:]]
    for sizes in product(*axes):
        if sizes[0] * sizes[1] * sizes[2] * sizes[3] == devices:
            yield from (Strategy(*sizes, *others) for others in product(*rest))


def listed(answer: PlanAnswer) -> Iterator[Strategy]:
    """Every strategy that an answer names."""
    for one in answer.top:
        yield from (one.strategy, *one.alike)
    if answer.near is not None:
        yield from (one.strategy for one in answer.near.members)
    if answer.shortfall is not None:
        yield answer.shortfall.strategy


@settings(max_examples=examples_of(120))
@given(st.sampled_from([(1, 4), (2, 4), (3, 2)]), some_of(FIXES), some_of(LIMITS))
def test_what_is_asked_holds_or_is_refused_by_name(
    nodes: tuple[int, int], fixed: dict[str, Any], limits: dict[str, Any]
) -> None:
    """The limit that is usual is that of tp where nodes have four devices."""
    limits = {"vpp": 3, "micro_batch": 3, "cp": 4} | limits
    assume(nodes[1] == 4 or {"tp"} & {*fixed, *limits})
    values = {name: allowed(name, fixed, limits) for name in SEARCHED}
    outside = [name for name, found in values.items() if not len(found)]
    asked = replace(ASKED, topology=cluster(nodes, (1e8, 1e10)))
    if outside:
        with pytest.raises(InputError, match="is limited, too"):
            replace(asked, space=SpaceLimits(**limits), fixed=tuple(fixed.items()))
        return
    asked = replace(asked, space=SpaceLimits(**limits), fixed=tuple(fixed.items()))
    devices, model, batch = asked.topology.devices, asked.model, asked.batch
    every = list(tried(devices, values))
    valid = {
        one for one in every if all(rule(model, batch, one) for rule in RULES_IN_WORDS.values())
    }
    if not valid:
        with pytest.raises(InputError, match="no strategy is valid") as refused:
            plan(asked)
        (names,) = re.findall(r"[(]rules? ([a-z_, ]+)[)]$", refused.value.rule)
        told = [RULES_IN_WORDS[name] for name in names.split(", ") if name != "devices"]
        assert not any(all(rule(model, batch, one) for rule in told) for one in every)
        return
    answer = plan(asked)
    assert answer.counts.strategies == len(valid)
    assert {*listed(answer)} <= valid


@pytest.mark.parametrize(
    ("fixed", "limits", "words"),
    [
        ({"tp": 4}, {"tp": 2}, "fixed tp=4: .*at most 2 .--max-tp"),
        ({"pp": 3}, {"pp": 2}, "fixed pp=3: .*at most 2 .--max-pp"),
        ({"cp": 2}, {"cp": 1}, "fixed cp=2: .*at most 1 .--max-cp"),
        ({"vpp": 3}, {"vpp": 2}, "fixed vpp=3: .*at most 2 .--max-vpp"),
        ({"micro_batch": 3}, {"micro_batch": 2}, "fixed mbs=3: .*at most 2 .--max-mbs"),
        ({"zero": 1}, {"zero": (0, 2)}, "fixed zero=1: .*one of 0, 2 .--zero"),
        ({"recompute": Recompute.FULL}, {"recompute": (Recompute.NONE,)}, "full: .*of none .--rec"),
        ({"sequence_parallel": True}, {"sequence_parallel": (False,)}, "fixed sp=1: .*one of 0;"),
    ],
)
def test_a_value_outside_a_limit_is_refused(
    fixed: dict[str, Any], limits: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        replace(ASKED, space=SpaceLimits(**limits), fixed=tuple(fixed.items()))
    replace(ASKED, fixed=tuple(fixed.items()))


@pytest.mark.parametrize(
    ("fixed", "limits", "words"),
    [
        ({"sequence_parallel": True, "tp": 1}, {}, "^tp=1, sp=1: .*rule sequence_parallel_tp.; "),
        (
            {"sequence_parallel": True},
            {"tp": 1},
            "^tp at most 1, sp=1: .*rule sequence_parallel_tp",
        ),
        ({"vpp": 2, "pp": 1, "zero": 0}, {}, "^pp=1, vpp=2: .*rule interleaving.; "),
        ({"zero": 1, "dp": 1, "cp": 1}, {}, "^dp=1, cp=1, zero=1: .*rule zero.; "),
        ({"tp": 2, "pp": 4}, {"zero": (1, 3)}, "^tp=2, pp=4, zero of 1, 3: .*rules devices, zero"),
        ({"tp": 4, "dp": 4}, {}, "^tp=4, dp=4: .* devices, 8 .rule devices.; "),
        ({"cp": 3}, {}, "^cp=3: .* devices, 8 .rule devices.; "),
        ({"dp": 8}, {}, "^dp=8: .*of 12 sequences .rule batch.; "),
        ({"dp": 2, "micro_batch": 5}, {}, "^mbs=5: .*rule batch.; "),
        ({"pp": 4, "vpp": 2, "micro_batch": 6}, {}, "^pp=4, vpp=2, mbs=6: .*rule schedule.; "),
        ({"pp": 8, "vpp": 3}, {}, "^pp=8, vpp=3: .*rule schedule.; |^pp=8, vpp=3: .*rule layers"),
    ],
)
def test_the_fewest_of_what_contradicts_is_named(
    fixed: dict[str, Any], limits: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        plan(replace(ASKED, space=SpaceLimits(**limits), fixed=tuple(fixed.items())))


def test_a_batch_that_nothing_can_train_is_told_without_anything_asked() -> None:
    odd = replace(ASKED, model=replace(MODEL, heads=9, kv_heads=9, layers=1), batch=Batch(1, 7))
    words = "^m with 1 sequences of 7 tokens: no strategy is valid on 8 devices: .*; take another"
    with pytest.raises(InputError, match=words):
        plan(replace(odd, topology=cluster((8,), (1e10,))))


def entries(*found: tuple[int, int, int], **fixed: int) -> PlanQuestion:
    """A question with such entries of the matrix: axis, level, value."""
    return replace(
        ASKED, rules=tuple(FixedEntry(*one) for one in found), fixed=tuple(fixed.items())
    )


def test_entries_of_the_matrix_do_not_contradict_what_is_fixed() -> None:
    entries((3, 1, 2), (3, 1, 2), tp=4)
    entries((3, 0, 2), (3, 1, 2), tp=4)
    with pytest.raises(InputError, match="fixed tp=l1:4: tp=l1:2 is fixed, too; keep one"):
        entries((3, 1, 2), (3, 1, 4))
    for bad in (((3, 1, 4),), ((3, 0, 1), (3, 1, 1))):
        with pytest.raises(InputError, match="multiply to its size, and tp=2 is fixed"):
            entries(*bad, tp=2)
