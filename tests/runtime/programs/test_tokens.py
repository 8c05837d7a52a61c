"""Tokens of a dispatch: who holds what, what is sent, what comes back; on real ranks over Gloo."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.dispatch import Dispatch
from p2smt.cost.dispatch import reached
from p2smt.errors import InputError
from p2smt.runtime.job import Job, JobStep
from p2smt.runtime.payload import DataType, Integers, RunOptions
from p2smt.runtime.programs import tokens as of_tokens
from p2smt.runtime.programs.plan_job import requests_job
from p2smt.runtime.programs.tokens import WIDTH, Tokens, check_exact, run_tokens
from p2smt.runtime.ranks.on_ranks import launch, run_job
from p2smt.runtime.summary import summarize
from tests.tiers import examples_of

CHECK = RunOptions(backend="reference", repeat=0)


def tokens(
    kind: Dispatch, devices: tuple[int, ...], units: tuple[int, ...], count: int = 20, seed: int = 0
) -> Tokens:
    return Tokens(kind, devices, units, count, check_exact(kind, DataType.FLOAT32), seed)


@st.composite
def drawn(draw: st.DrawFn) -> Tokens:
    """Groups of any devices of a cluster of three levels, evenly spread or not."""
    units = draw(st.sampled_from([(4, 1), (6, 2, 1), (1,), (12, 6, 3, 1)]))
    devices = draw(st.sets(st.integers(0, 23), min_size=2, max_size=8))
    groups = draw(st.sampled_from([1, 2]))
    experts = groups * len(devices) * draw(st.integers(1, 3))
    top = draw(st.integers(1, groups))
    active = draw(st.integers(1, top * experts // groups))
    kind = Dispatch(experts, active, groups, top, draw(st.sampled_from([1.0, 1.5, 40.0])))
    return tokens(
        kind, tuple(sorted(devices)), units, draw(st.integers(1, 9)), draw(st.integers(0, 99))
    )


def wanted(found: Tokens, source: int, token: int) -> int:
    """What must come back for the first element of a token, expert by expert."""
    number = np.array([source * found.count + token])
    value = int(found.values(source)[token, 0])
    total = 0
    for member in range(found.ranks):
        alone = found.processed(member, number, np.full((1, WIDTH), value))
        total += int(alone[0, 0])
    return total


@settings(max_examples=examples_of(150))
@given(drawn())
def test_every_token_goes_where_it_must_and_comes_back(found: Tokens) -> None:
    held, sums, _ = run_tokens(found)
    for member in range(found.ranks):
        assert found.misplaced(member, held[member]) == ""
        assert (sums[member] == found.combined(member)).all()
        assert sums[member][0, 0] == wanted(found, member, 0)
        assert sums[member].max() <= DataType.FLOAT32.exact_limit


@settings(max_examples=examples_of(100))
@given(drawn())
def test_a_token_enters_each_entity_once_where_it_is_needed(found: Tokens) -> None:
    """Every copy goes to another entity that needs it; what its source lacks comes at once."""
    devices = np.array(found.devices)
    held = [np.arange(found.count) + member * found.count for member in range(found.ranks)]
    for level, unit in enumerate(found.units):
        around = devices // found.units[level - 1] if level else np.zeros_like(devices)
        entered = Counter[tuple[int, int]]()
        came: list[list[Integers]] = [[] for _ in devices]
        for member, numbers in enumerate(held):
            for target, index in enumerate(found.sends(member, level, numbers)):
                if len(index):
                    assert around[target] == around[member]
                    assert devices[target] // unit != devices[member] // unit
                    entered.update(
                        (one, devices[target] // unit) for one in numbers[index].tolist()
                    )
                    came[target].append(numbers[index])
        assert max(entered.values(), default=1) == 1
        before = {
            (n, devices[m] // unit) for m, numbers in enumerate(held) for n in numbers.tolist()
        }
        needs = {
            (number, int(devices[owner]) // unit)
            for number in range(found.ranks * found.count)
            for owner in found.owners(np.array([number]))[0].tolist()
        }
        assert set(entered) == needs - before
        held = [np.concatenate([old, *new]) for old, new in zip(held, came, strict=True)]


@pytest.mark.parametrize("active", [1, 4, 8])
@pytest.mark.parametrize("groups", [(1, 1), (4, 2)])
def test_the_traffic_of_a_drawn_routing_is_what_is_priced(
    active: int, groups: tuple[int, int]
) -> None:
    """Counted copies into nodes and ranks that are not a token's own, per token of a rank."""
    kind, count = Dispatch(64, active, *groups), 4000
    found = tokens(kind, tuple(range(16)), (4, 1), count)
    for unit in found.units:
        spanned = 16 // unit
        own = np.repeat(np.arange(16), count)[:, None] // unit
        entity = found.owners(np.arange(16 * count)) // unit
        needed = np.zeros((16 * count, spanned), dtype=bool)
        needed[np.arange(16 * count)[:, None], entity] = True
        needed[np.arange(16 * count), own[:, 0]] = False
        counted = needed.sum() / (16 * count)
        priced = float(reached(spanned, kind)) * (spanned - 1) / spanned
        if groups == (1, 1):
            assert counted == pytest.approx(priced, rel=0.01)
        else:
            assert counted <= priced * 1.01
    _, _, copies = run_tokens(replace(found, count=50, _experts={}))
    assert len(copies) == 2


def test_the_copies_of_the_first_level_are_those_that_are_priced() -> None:
    kind, count = Dispatch(64, 8), 1000
    found = tokens(kind, tuple(range(8)), (2, 1), count)
    _, _, counts = run_tokens(found)
    priced = float(reached(4, kind)) * 3 / 4
    assert sum(counts[0]) / (8 * count) == pytest.approx(priced, rel=0.01)


@pytest.mark.parametrize("imbalance", [1.0, 1.5, 2.5])
def test_an_imbalance_is_that_of_the_busiest_rank(imbalance: float) -> None:
    kind = Dispatch(32, 1, imbalance=imbalance)
    found = tokens(kind, tuple(range(8)), (1,), 5000)
    owners = found.owners(np.arange(8 * 5000))
    loads = np.bincount(owners.ravel(), minlength=8) / 5000
    assert loads.max() == pytest.approx(imbalance, rel=0.05)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_limit_on_groups_holds_for_every_token(seed: int) -> None:
    found = tokens(Dispatch(32, 6, 8, 2), tuple(range(8)), (1,), 500, seed)
    every = found.chosen(np.arange(8 * 500))
    assert max(len(set(row)) for row in (every // 4).tolist()) == 2
    assert all(len(set(row)) == 6 for row in every.tolist())


# What is wrong is found ---------------------------------------------------------------------


def job(text: str = "ep=20KiB,experts=32,active=4") -> Job:
    """A dispatch over eight ranks on two nodes of four."""
    cluster = p2smt.trimmed(p2smt.load_topology("dgx-h100:2"), {"gpu": 4})
    problem = p2smt.Problem(cluster, p2smt.parse_axes("dp=2,ep=4"), (p2smt.dispatch(text),))
    return requests_job(problem, p2smt.Placement(((1, 2), (2, 2))), (None,))


def errors(options: RunOptions = CHECK) -> list[str]:
    result = run_job(job(), options)
    assert result is not None
    assert result.verified is not any(found.errors for found in result.requests)
    return [text for found in result.requests for text in found.errors]


def test_the_reference_verifies() -> None:
    assert errors() == []


def test_a_copy_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    sends = Tokens.sends

    def fewer(self: Tokens, member: int, level: int, numbers: Integers) -> list[Integers]:
        return [one[1:] for one in sends(self, member, level, numbers)]

    monkeypatch.setattr(Tokens, "sends", fewer)
    assert any("tokens for its experts did not come" in text for text in errors())
    assert any("wrong value" in text for text in errors())


def test_a_copy_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    sends = Tokens.sends

    def twice(self: Tokens, member: int, level: int, numbers: Integers) -> list[Integers]:
        return [np.concatenate([one, one[:1]]) for one in sends(self, member, level, numbers)]

    monkeypatch.setattr(Tokens, "sends", twice)
    assert any("came twice" in text for text in errors())


def test_another_expert(monkeypatch: pytest.MonkeyPatch) -> None:
    processed = Tokens.processed

    def shifted(self: Tokens, member: int, numbers: Integers, values: Integers) -> Integers:
        return processed(self, member, numbers, values + (member == 1))

    monkeypatch.setattr(Tokens, "processed", shifted)
    assert any("wrong value: expected" in text for text in errors())


WRONG_STEPS: dict[str, Callable[[JobStep], tuple[JobStep, ...]]] = {
    "other groups": lambda step: (replace(step, groups=((0, 4), (1, 5), (2, 6), (3, 7))),),
    "twice": lambda step: (step, step),
    "none": lambda _: (),
}


def with_steps(what: str) -> Job:
    made = job()
    (asked,) = made.requests
    return replace(made, requests=(replace(asked, steps=WRONG_STEPS[what](asked.steps[0])),))


@pytest.mark.parametrize("what", WRONG_STEPS)
def test_steps_that_are_not_one_dispatch_in_its_groups(what: str) -> None:
    result = run_job(with_steps(what), CHECK)
    assert result is not None
    assert not result.verified
    (found,) = result.requests
    assert ["is not one dispatch on the groups of its axes" in one for one in found.errors] == [
        True
    ]


def test_a_type_that_holds_too_few_integers() -> None:
    assert check_exact(Dispatch(64, 64), DataType.BFLOAT16) == 2
    with pytest.raises(InputError, match="bfloat16: holds too few integers for sums over 65"):
        check_exact(Dispatch(130, 65), DataType.BFLOAT16)


# Real ranks ---------------------------------------------------------------------------------


@pytest.mark.cluster
def test_ranks_over_gloo_find_steps_of_other_groups() -> None:
    made, options = with_steps("other groups"), RunOptions(warmup=0, repeat=1, time_limit_s=600)
    (found,) = summarize(made, launch(made, options)).requests
    assert not found.verified
    assert "is not one dispatch on the groups of its axes" in found.errors[0]


@pytest.mark.cluster
@pytest.mark.parametrize(
    "dtype",
    [
        DataType.BFLOAT16,
        pytest.param(DataType.FLOAT32, marks=pytest.mark.exhaustive),
        pytest.param(DataType.INT64, marks=pytest.mark.exhaustive),
    ],
)
def test_ranks_over_gloo(dtype: DataType) -> None:
    made = job("ep=20KiB,experts=32,active=4,groups=4,top_groups=2,imbalance=1.5")
    options = RunOptions(data_type=dtype, warmup=1, repeat=2, time_limit_s=600)
    (found,) = summarize(made, launch(made, options)).requests
    assert found.errors == ()
    assert found.verified
    assert found.repetitions_checked == 2
    assert len(found.total.samples) == len(found.steps[0].samples) == 2
    assert found.request.predicted_s is not None
    assert math.isfinite(found.request.predicted_s)


def test_levels_that_are_alike_are_one() -> None:
    assert of_tokens.levels_of((8, 8, 1)) == (8, 1)
    assert of_tokens.levels_of((1,)) == (1,)
