"""Classic algorithms: right in every interleaving, with the steps and traffic of the textbook."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, log2

import pytest

from p2smt.collectives.contract import contract
from p2smt.errors import InputError
from p2smt.schedules.classics import ANY, CLASSICS, POWERS, Example, Value, classic
from p2smt.schedules.classics.trees import in_order_edges
from p2smt.schedules.model import Connection, Schedule
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from tests.schedules.greedy_run import GreedyRun

CASES = [(c.name, *example) for c in CLASSICS.values() for example in c.examples]


def rounds(schedule: Schedule) -> int:
    """Messages in the longest chain in which each can only be sent once the one before came."""
    at: dict[tuple[int, int, int], int] = {}
    sent: dict[Connection, list[int]] = defaultdict(list)
    taken: Counter[Connection] = Counter()
    left = list(schedule.steps)
    while left:
        waiting = []
        for step in left:
            before = [(step.rank, ref.block, ref.index) for ref in step.waits]
            before += [(step.rank, step.block, step.index - 1)] * (step.index > 0)
            came = step.receive is None or len(sent[step.receive]) > taken[step.receive]
            if not came or not at.keys() >= set(before):
                waiting.append(step)
                continue
            time = max((at[b] for b in before), default=0)
            if step.receive:
                time = max(time, sent[step.receive][taken[step.receive]] + 1)
                taken[step.receive] += 1
            if step.send:
                sent[step.send].append(time)
            at[step.rank, step.block, step.index] = time
        assert len(waiting) < len(left)
        left = waiting
    return max(at.values())


def sent_by_rank(schedule: Schedule) -> list[Fraction]:
    """What each rank sends, in units of the whole vector (the larger buffer)."""
    chunks = [0] * schedule.ranks
    for step in schedule.steps:
        chunks[step.rank] += step.count if step.send else 0
    whole = max(schedule.sizes[0].input, schedule.sizes[0].output)
    return [Fraction(c, whole) for c in chunks]


@pytest.mark.parametrize(("name", "ranks", "parameters"), CASES)
def test_every_example_is_valid_at_the_smallest_depth(
    name: str, ranks: int, parameters: dict[str, Value]
) -> None:
    schedule = classic(name, ranks, **parameters)
    depth = 2 if parameters.get("fused") else 1
    report = verify(schedule, fifo_depth=depth)
    assert (report.verdict, report.violations, report.warnings) == (Verdict.VALID, (), ())
    assert report.races == 0
    for seed in range(3):
        assert GreedyRun(schedule, depth, seed).right


@pytest.mark.parametrize(("name", "ranks", "parameters"), CASES)
def test_contract_and_blocks(name: str, ranks: int, parameters: dict[str, Value]) -> None:
    found, schedule = CLASSICS[name], classic(name, ranks, **parameters)
    assert schedule.name == name
    small = min(schedule.sizes[0].input, schedule.sizes[0].output)
    chunks = small // ranks if found.collective == "alltoall" else small
    root = parameters.get("root", 0)
    assert isinstance(root, int)
    in_place = bool(parameters.get("in_place", found.parameters.get("in_place", False)))
    assert schedule.contract == contract(
        found.collective, ranks, chunks, in_place=in_place, root=root
    )
    ends: dict[tuple[int, int], tuple[set[object], set[object]]] = defaultdict(
        lambda: (set(), set())
    )
    for step in schedule.steps:
        ends[step.rank, step.block][0].update({step.send} - {None})
        ends[step.rank, step.block][1].update({step.receive} - {None})
    assert all(len(sends) <= 1 and len(receives) <= 1 for sends, receives in ends.values())


@pytest.mark.parametrize("name", CLASSICS)
def test_a_message_that_is_not_stored_is_noticed(name: str) -> None:
    """The checks above can fail."""
    schedule = classic(name, *CLASSICS[name].examples[0][:1])
    last = max((s for s in schedule.steps if s.receive), key=lambda s: (s.rank, s.block, s.index))
    steps = [replace(s, writes=()) if s is last else s for s in schedule.steps]
    wrong = replace(schedule, steps=tuple(steps))
    assert verify(wrong).verdict is Verdict.INVALID
    assert not GreedyRun(wrong, 8).right


@pytest.mark.parametrize("ranks", [11, 12, 16])
def test_larger_ones(ranks: int) -> None:
    for found in CLASSICS.values():
        if found.sizes == ANY or ranks == 16 or (ranks == 12 and found.sizes != POWERS):
            assert verify(classic(found.name, ranks), 1).verdict is Verdict.VALID


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 7, 8, 9, 16])
def test_numbers_of_steps(ranks: int) -> None:
    up, down, folds = ceil(log2(ranks)), floor(log2(ranks)), ranks & (ranks - 1) > 0
    exact = {
        "ring-all-reduce": 2 * (ranks - 1),
        "ring-reduce-scatter": ranks - 1,
        "ring-all-gather": ranks - 1,
        "chain-broadcast": ranks - 1,
        "one-shot-all-reduce": 1,
        "two-shot-all-reduce": 2,
        "pairwise-all-to-all": 1,
    }
    # Not every rank takes part in every step, so that no message may depend on one of each.
    at_most = {
        "binomial-broadcast": up,
        "binomial-reduce": up,
        "binomial-all-reduce": 2 * up,
        "double-binary-tree-all-reduce": 2 * (up + 1),
        "van-de-geijn-broadcast": up + ranks - 1,
        "recursive-doubling-all-reduce": down + 2 * folds,
        "rabenseifner-all-reduce": 2 * down + 3 * folds,
        "bruck-all-gather": up,
        "bruck-all-to-all": up,
    }
    if not folds:
        for name in ("halving-doubling", "rabenseifner", "swing"):
            exact[f"{name}-all-reduce"] = 2 * up
        exact |= {"recursive-doubling-all-reduce": up, "bruck-all-gather": up}
    assert {name: rounds(classic(name, ranks)) for name in exact} == exact
    assert all(rounds(classic(name, ranks)) <= steps for name, steps in at_most.items())


@pytest.mark.parametrize(
    ("name", "ranks", "parameters", "steps"),
    [
        ("hierarchical-all-reduce", 12, {"gpus": 4}, 2 + 2 * 2 + 2),
        ("rail-aligned-all-reduce", 12, {"gpus": 4}, 1 + 2 * 2 + 1),
        ("blue-connect-all-reduce", 12, {"dims": (3, 4)}, 2 * (2 + 3)),
        ("torus-all-reduce", 12, {"dims": (3, 4)}, 2 * (2 + 3)),
        ("torus-all-reduce", 8, {"dims": (2, 2, 2)}, 2 * 3),
        ("two-step-all-to-all", 12, {"gpus": 4}, 2),
        ("three-step-all-to-all", 12, {"gpus": 4}, 3),
        ("ring-all-reduce", 5, {"directions": 2, "fused": True}, 2 * 4),
    ],
)
def test_numbers_of_steps_in_grids(
    name: str, ranks: int, parameters: dict[str, Value], steps: int
) -> None:
    assert rounds(classic(name, ranks, **parameters)) == steps


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("ring-all-reduce", {"directions": 2}),
        ("halving-doubling-all-reduce", {}),
        ("rabenseifner-all-reduce", {}),
        ("swing-all-reduce", {}),
        ("two-shot-all-reduce", {}),
        ("blue-connect-all-reduce", {"dims": (2, 2, 2)}),
        ("rail-aligned-all-reduce", {"gpus": 4}),
        ("torus-all-reduce", {"dims": (4, 2)}),
    ],
)
def test_bandwidth_optimal_ones_send_no_more_than_they_must(
    name: str, parameters: dict[str, Value]
) -> None:
    assert set(sent_by_rank(classic(name, 8, **parameters))) == {Fraction(2 * 7, 8)}


@pytest.mark.parametrize("ranks", [2, 3, 6, 7, 8, 9, 16])
def test_double_binary_tree(ranks: int) -> None:
    """Parents come first, odd ranks are leaves, nobody has more than two children."""
    edges = in_order_edges(ranks)
    assert sorted(child for _, child in edges) == list(range(1, ranks))
    seen = {0}
    for parent, child in edges:
        assert parent in seen
        seen.add(child)
    children = Counter(parent for parent, _ in edges)
    assert all(parent % 2 == 0 and count <= 2 for parent, count in children.items())


def test_rails_and_neighbours_are_kept() -> None:
    rails = classic("rail-aligned-all-reduce", 12, gpus=4)
    two_step = classic("two-step-all-to-all", 12, gpus=4)
    for step in (*rails.steps, *two_step.steps):
        if step.send and step.send.source // 4 != step.send.target // 4:
            assert step.send.source % 4 == step.send.target % 4
    between = Counter(
        step.send
        for step in classic("three-step-all-to-all", 12, gpus=4).steps
        if step.send and step.send.source // 4 != step.send.target // 4
    )
    assert sorted(between.values()) == [1] * 6
    for step in classic("ring-all-gather", 5, directions=2).steps:
        if step.send:
            assert (step.send.target - step.send.source) % 5 == (4 if step.send.channel else 1)


@pytest.mark.parametrize("name", ["chain-broadcast", "binomial-reduce", "van-de-geijn-broadcast"])
def test_every_root(name: str) -> None:
    for root in range(5):
        assert verify(classic(name, 5, root=root), 1).verdict is Verdict.VALID


def test_fused_rings_have_half_the_steps_and_need_two_messages() -> None:
    plain = classic("ring-all-reduce", 6)
    fused = classic("ring-all-reduce", 6, fused=True)
    assert (len(plain.steps), len(fused.steps)) == (6 * 2 * 10, 6 * (10 + 1))
    assert Counter(step.kind for step in fused.steps) == {
        "s": 6,
        "rrcs": 6 * 5,
        "rcs": 6 * 4,
        "r": 6,
    }
    assert verify(fused, 2).min_depth == 2
    assert verify(fused, 1).verdict is Verdict.INVALID
    assert verify(classic("chain-broadcast", 6, fused=True)).min_depth == 1


@pytest.mark.parametrize(
    ("name", "ranks", "parameters", "words"),
    [
        ("quantum-ring", 4, {}, "is not known"),
        ("ring-all-reduce", 1, {}, "1 ranks: must be 2"),
        ("ring-all-reduce", -3, {}, "must be 2"),
        ("ring-all-reduce", 10**12, {}, "must be 2 to 4096"),
        ("ring-all-reduce", 4096, {"channels": 256}, "chunks in all"),
        ("ring-all-reduce", 4, {"directions": 3}, "one or two"),
        ("ring-all-reduce", 4, {"channels": 0}, "must be 1 to 256"),
        ("ring-all-reduce", 4, {"speed": 3}, "is not one of ring-all-reduce"),
        ("ring-all-reduce", 4, {"fused": 1}, "true or false"),
        ("ring-all-reduce", 4, {"directions": True}, "a whole number"),
        ("chain-broadcast", 4, {"root": 4}, "name one of them"),
        ("chain-broadcast", 4, {"chunks": 0}, "must be at least 1"),
        ("double-binary-tree-all-reduce", 4, {"chunks": 3}, "must be even"),
        ("swing-all-reduce", 6, {}, "power of two"),
        ("halving-doubling-all-reduce", 12, {}, "power of two"),
        ("hierarchical-all-reduce", 5, {}, "do not fill nodes of 2"),
        ("rail-aligned-all-reduce", 4, {"gpus": 0}, "must be 1 to 4"),
        ("torus-all-reduce", 6, {"dims": (2, 2)}, "their product must be 6"),
        ("torus-all-reduce", 6, {"dims": (-2, -3)}, "positive"),
        ("torus-all-reduce", 6, {"dims": 6}, "a list of whole numbers"),
        ("bruck-all-to-all", 2, {"chunks": 2}, "it has no parameters"),
    ],
)
def test_bad_requests(name: str, ranks: int, parameters: dict[str, Value], words: str) -> None:
    with pytest.raises(InputError, match=words):
        classic(name, ranks, **parameters)


def test_every_classic_describes_itself() -> None:
    for found in CLASSICS.values():
        assert found.summary
        assert found.sizes
        keys = {key for _, parameters in found.examples for key in parameters}
        assert keys <= set(found.parameters)
        example: Example = found.examples[0]
        assert classic(found.name, example[0]).ranks == example[0]
