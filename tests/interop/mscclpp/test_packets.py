"""Packet plans as MSCCL++'s language writes them, and where their operations are in the file."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy

import pytest

from p2smt.collectives.contract import Contribution
from p2smt.schedules.model import Schedule, Span, Step
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import verify
from tests.interop.mscclpp.packet_all_reduce import packet_all_reduce
from tests.interop.mscclpp.plans import Data, lonely, move, near, op, read
from tests.schedules.greedy_run import Cell, cell

NO_SOLVER = 0


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_settled_without_the_solver(ranks: int) -> None:
    report = verify(read(packet_all_reduce(ranks)), effort=NO_SOLVER)
    assert (report.verdict, report.races) == (Verdict.VALID, 0)
    assert report.memory_rule == "packets publish their own words only"


class ChunkRun:
    """Every chunk of a step runs when its own packets are there, in a random order; the chunks of
    a block's steps in the order of the steps."""

    def __init__(self, schedule: Schedule, seed: int) -> None:
        self.schedule, choice = schedule, random.Random(seed)
        self.memory: dict[Cell, Counter[Contribution]] = {}
        self.there: set[Cell] = set()
        for rank, chunks in enumerate(schedule.contract.starts):
            for chunk, part in enumerate(chunks):
                if part is not None:
                    self.memory[rank, "io", chunk] = Counter([part])
        threads: dict[tuple[int, int, int], list[tuple[Step, int]]] = {}
        for step in schedule.steps:
            for k in range(step.count):
                threads.setdefault((step.rank, step.block, k), []).append((step, k))
        waiting = list(threads.values())
        while ready := [todo for todo in waiting if todo and self._can(*todo[0])]:
            self._do(*choice.choice(ready).pop(0))
        self.left = sum(map(len, waiting))

    def _at(self, span: Span, k: int) -> Cell:
        return cell(self.schedule, span.rank, span.buffer, span.start + k)

    def _can(self, step: Step, k: int) -> bool:
        return all(self._at(span, k) in self.there for span in step.reads if span.packet)

    def _do(self, step: Step, k: int) -> None:
        value: Counter[Contribution] = Counter()
        for span in step.reads:
            value += self.memory[self._at(span, k)]
        for span in step.writes:
            self.memory[self._at(span, k)] = value
            self.there |= {self._at(span, k)} if span.packet else set()

    def wrong(self) -> Iterator[tuple[int, int]]:
        """Goals that are not met."""
        for goal in self.schedule.contract.goals:
            if self.memory.get((goal.rank, "io", goal.chunk)) != goal.multiset():
                yield goal.rank, goal.chunk


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_random_runs_chunk_by_chunk_are_right(ranks: int, seed: int) -> None:
    run = ChunkRun(read(packet_all_reduce(ranks)), seed)
    assert run.left == 0
    assert not list(run.wrong())


def moved(plan: Data, gpu: int, block: int, op: int, by: int) -> Data:
    """The plan with what an operation stores here moved by so many chunks."""
    changed = deepcopy(plan)
    changed["gpus"][gpu]["threadblocks"][block]["ops"][op]["dst_buff"][0]["index"] += by
    return changed


def test_a_result_that_overwrites_what_is_still_to_be_sent() -> None:
    """Unpacked over the part of another peer, chunk by chunk: its packets may not be sent yet."""
    plan = packet_all_reduce(3)
    for ops in (plan["gpus"][0]["threadblocks"][k]["ops"] for k in range(3)):
        for given in ops:
            if given["name"] == "upkt":
                first = given["dst_buff"][0]["index"] // 3
                given["dst_buff"][0]["index"] = {1: 2, 2: 1}[first] * 3
    report = verify(read(plan))
    assert report.verdict is Verdict.INVALID
    wrong = {pair for seed in range(8) for pair in ChunkRun(read(plan), seed).wrong()}
    assert wrong


def test_steps_are_named_by_their_place_in_the_file() -> None:
    schedule = read(moved(packet_all_reduce(3), 0, 2, 1, -1))
    report = verify(schedule)
    assert report.verdict is Verdict.INVALID
    (step,) = [s for s in schedule.steps if (s.rank, s.block, s.kind) == (0, 2, "upkt")]
    assert step.in_file == (2, (1,))
    named = {number for broken in report.violations for number in (*broken.steps, *broken.order)}
    assert named <= set(range(len(schedule.steps)))
    assert any("rank 0 block 2 step 1 upkt" in broken.message for broken in report.violations)


def test_a_race_is_joined_to_the_harm_it_does_and_to_no_other() -> None:
    """o[8] of rank 0 is never written, whatever races: what the race spoils is told of it."""
    report = verify(read(moved(packet_all_reduce(3), 0, 2, 1, -1)))
    races = [broken for broken in report.violations if broken.kind is Kind.RACE]
    others = {(broken.rank, broken.chunk) for broken in report.violations} - {(0, 8)}
    assert (0, 8) in {(broken.rank, broken.chunk) for broken in report.violations}
    assert races
    for broken in races:
        assert (broken.rank, broken.chunk) in others
        assert f"access o[{broken.chunk}] of rank {broken.rank}" in broken.message
        assert "comes first" in broken.message
        assert broken.order


def test_a_pipeline_names_the_operation_inside_it() -> None:
    inner = [move("copy", [near("i", 0)], [near("s", 0)], channel_type="none"), op("nop")]
    context = {"unit_size": 1024, "num_chunks": 1}
    pipeline = op("pipeline", iter_context=context, ops=inner)
    schedule = read(lonely([op("nop"), pipeline, op("nop")], inplace=False))
    assert [step.where for step in schedule.steps[:3]] == [
        "block 0 step 0",
        "block 0 step 1.0",
        "block 0 step 1.1",
    ]
    assert schedule.steps[-1].where == "block 0 step 2"
