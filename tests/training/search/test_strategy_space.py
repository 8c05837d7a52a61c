"""The space of strategies: the same as brute force has it, and clear words where it is empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.link import Device
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.training.efficiency import Efficiency, Framework, TrainingRun
from p2smt.training.iteration import predict
from p2smt.training.search.choices import Choices, switch_domain
from p2smt.training.search.question import PlanQuestion, SpaceLimits, searched_field
from p2smt.training.search.strategies import space_of
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.oracles.strategies import all_strategies
from tests.tiers import examples_of
from tests.training.strategies.test_validity import models

NODE = Link(LinkKind.SWITCH, (Piece("simple", 1e-6, 1e9),), fabric="nvlink4")
NETWORK = replace(NODE, fabric="infiniband")
EFFICIENCY = Efficiency("e", "d", Framework("f", True, 0.5, True, True, 4), 0.5, 0.0, 1, 0.05)
MODEL = Transformer("m", 6, 64, 8, 4, 96, True, 100, 8)


DEVICE = Device("d", (("bf16", 1e12),), 1e11, 8 * 10**7)


def topology(nodes: int, devices: int) -> Topology:
    return Topology("t", (Level("node", nodes, NETWORK), Level("gpu", devices, NODE)))


WITH_DEVICE = replace(topology(2, 2), device=DEVICE)


def question(model: Transformer, nodes: int, devices: int, space: SpaceLimits) -> PlanQuestion:
    return PlanQuestion(model, Batch(16, 48), topology(nodes, devices), EFFICIENCY, space)


def found(asked: PlanQuestion) -> list[Strategy]:
    space = space_of(asked, Choices.of(asked))
    return [space.strategy(row) for row in range(len(space))]


@settings(max_examples=examples_of(60))
@given(
    models(),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([2, 4]),
    st.sampled_from([None, 2, 4]),
    st.sampled_from([None, 1, 3]),
    st.sets(st.sampled_from(range(4)), min_size=1),
    st.sets(st.booleans(), min_size=1),
    st.sampled_from(["none", "partial", "full"]),
    st.dictionaries(
        st.sampled_from(["tp", "vpp", "micro_batch", "zero"]), st.integers(1, 2), max_size=2
    ),
)
def test_spaces_are_those_of_brute_force(
    model: Transformer,
    nodes: int,
    devices: int,
    tp: int | None,
    vpp: int | None,
    zero: set[int],
    sp: set[bool],
    graphs: str,
    fixed: dict[str, int],
) -> None:
    again = (Recompute.FULL,) if graphs == "none" else (Recompute.NONE, Recompute.FULL)
    space = SpaceLimits(tp, 2, None, vpp, 4, again, tuple(zero), tuple(sp))
    space = replace(space, **dict.fromkeys(fixed))
    asked = question(model, nodes, devices, space)
    asked = replace(asked, graphs=graphs, fixed=tuple(fixed.items()))
    expected = list(all_strategies(asked, space.tp or devices))
    if not expected:
        with pytest.raises(InputError):
            found(asked)
        return
    listed = found(asked)
    assert len(set(listed)) == len(listed)
    assert set(listed) == set(expected)


def test_tp_stays_inside_a_switch_domain_by_default() -> None:
    asked = question(replace(MODEL, heads=16, ffn=64), 4, 4, SpaceLimits())
    assert switch_domain(asked.topology) == 4
    assert max(one.tp for one in found(asked)) == 4
    wide = replace(asked, space=SpaceLimits(tp=16))
    assert max(one.tp for one in found(wide)) == 16
    assert dict(Choices.of(asked).text())["tp"] == "1 to 4"


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ((("tp", 3),), "tp=3: .*number of devices, 16 .rule devices.; change"),
        ((("pp", 16),), "pp=16.*rule layers"),
        ((("micro_batch", 3),), "mbs=3: .*rule batch"),
        ((("tp", 0),), "must be a whole number"),
        ((("dp", 16), ("vpp", 2)), "dp=16, vpp=2: .*rules devices, interleaving"),
    ],
)
def test_an_empty_space_says_why(fixed: tuple[tuple[str, int], ...], words: str) -> None:
    asked = question(replace(MODEL, kv_heads=8), 4, 4, SpaceLimits())
    with pytest.raises(InputError, match=words):
        found(replace(asked, fixed=fixed))


@pytest.mark.parametrize(
    "build",
    [
        lambda: SpaceLimits(tp=0),
        lambda: SpaceLimits(zero=()),
        lambda: SpaceLimits(zero=(4,)),
        lambda: replace(question(MODEL, 2, 2, SpaceLimits()), fixed=(("flash", 1),)),
        lambda: replace(question(MODEL, 2, 2, SpaceLimits()), fixed=(("tp", 1), ("tp", 2))),
        lambda: replace(question(MODEL, 2, 2, SpaceLimits()), within=-1.0),
        lambda: replace(question(MODEL, 2, 2, SpaceLimits()), top=0),
        lambda: SpaceLimits(recompute=()),
        lambda: replace(question(MODEL, 2, 2, SpaceLimits()), memory_bytes=0),
        lambda: replace(question(MODEL, 2, 2, SpaceLimits()), top=2.5),  # type: ignore[arg-type]
        lambda: SpaceLimits(tp=2.5),  # type: ignore[arg-type]
        lambda: question(MODEL, 2, 2, SpaceLimits()).capacity_bytes,
    ],
)
def test_questions_are_checked(build: object) -> None:
    with pytest.raises(InputError):
        build()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recompute", "full"),
        ("recompute", 9),
        ("recompute", 0),
        ("sequence_parallel", 5),
        ("sequence_parallel", "yes"),
        ("zero", 4),
        ("zero", -1),
        ("zero", 1.0),
        ("tp", 2.5),
        ("tp", 2.0),
        ("tp", "2"),
        ("pp", True),
        ("dp", 0),
        ("cp", None),
        ("vpp", 10**30),
        ("micro_batch", -1),
    ],
)
def test_values_that_are_fixed_are_checked(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"fixed {name}="):
        replace(question(MODEL, 2, 2, SpaceLimits()), fixed=((name, value),))


@pytest.mark.parametrize("index", [-1, 9, 1.0, True])
@pytest.mark.parametrize(
    "kind", [lambda i, j: AxisRule(i, j, True), lambda i, j: FixedEntry(i, j, 1)]
)
def test_rules_are_checked(kind: Callable[..., AxisRule | FixedEntry], index: Any) -> None:
    asked = question(MODEL, 2, 2, SpaceLimits())
    replace(asked, rules=(kind(3, 1),))
    for at, what in (((index, 0), "axis"), ((0, index), "level")):
        with pytest.raises(InputError, match=f"its {what} must be an index"):
            replace(asked, rules=(kind(*at),))
    with pytest.raises(InputError, match="its level must be an index from 0 to 1"):
        replace(asked, rules=(kind(0, 2),))


@pytest.mark.parametrize("value", [0, 1.5, 10**30])
def test_entries_that_are_fixed_are_checked(value: Any) -> None:
    with pytest.raises(InputError, match="must be a whole number"):
        replace(question(MODEL, 2, 2, SpaceLimits()), rules=(FixedEntry(0, 0, value),))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("split", "layers are split evenly by plan; estimate takes a given split"),
        ("flash", "is not searched for; give --flash"),
        ("tpp", "is no key of a strategy; did you mean"),
    ],
)
def test_keys_that_cannot_be_fixed_say_what_to_do(key: str, words: str) -> None:
    assert searched_field("mbs", "it") == "micro_batch"
    with pytest.raises(InputError, match=words):
        searched_field(key, "--fix")


def test_recomputation_that_saves_nothing_is_left_out_by_default() -> None:
    asked = question(MODEL, 2, 2, SpaceLimits())
    kinds = {
        flash: {one.recompute for one in found(replace(asked, flash=flash))}
        for flash in (False, True)
    }
    assert kinds == {False: set(Recompute), True: {Recompute.NONE, Recompute.FULL}}
    shown = dict(Choices.of(asked).text())["recompute"]
    assert shown == "none, full (selective saves nothing with flash attention)"
    given = (Recompute.SELECTIVE,)
    for wanted in (
        replace(asked, space=SpaceLimits(recompute=given)),
        replace(asked, fixed=(("recompute", Recompute.SELECTIVE),)),
    ):
        assert {one.recompute for one in found(wanted)} == set(given)
        assert dict(Choices.of(wanted).text())["recompute"] == "selective"


@pytest.mark.parametrize("flash", [True, False])
def test_selective_recomputation_saves_only_scores(flash: bool) -> None:
    run = TrainingRun(MODEL, Batch(16, 48), Strategy(dp=4, flash=flash))
    again = replace(run, strategy=replace(run.strategy, recompute=Recompute.SELECTIVE))
    kept, left = (predict(one, WITH_DEVICE, EFFICIENCY).memory.total for one in (run, again))
    assert (left > 0.98 * kept) is flash


def test_more_chunks_than_usual_are_taken_where_they_are_asked_for() -> None:
    deep = replace(MODEL, layers=24)
    asked = question(deep, 2, 2, SpaceLimits())
    assert dict(Choices.of(asked).text())["vpp"] == "1 to 10"
    assert max(one.vpp for one in found(asked)) <= 10
    assert max(one.vpp for one in found(replace(asked, space=SpaceLimits(vpp=24)))) > 10
    assert {one.vpp for one in found(replace(asked, fixed=(("vpp", 12),)))} == {12}


def test_some_memory_is_kept_free_unless_it_is_given() -> None:
    big = replace(WITH_DEVICE, device=Device("h", (("bf16", 1e12),), 1e11, 80 * 10**9))
    asked = replace(question(MODEL, 2, 2, SpaceLimits()), topology=big)
    assert (asked.capacity_bytes, asked.free_bytes) == (73_600_000_000, 6_400_000_000)
    given = replace(asked, memory_bytes=80 * 10**9)
    assert (given.capacity_bytes, given.free_bytes) == (80 * 10**9, 0)
