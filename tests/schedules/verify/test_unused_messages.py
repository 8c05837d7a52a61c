"""Messages nobody needs, against poison: data that is spoilt shows in an output, or is unused."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives.contract import Goal
from p2smt.schedules.index import index_of, unused_messages
from p2smt.schedules.model import Buffer, Schedule, Span, Step
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import some_run, verify
from tests.schedules.greedy_run import Cell, cell
from tests.schedules.random_schedules import random_schedule
from tests.schedules.small_schedules import SMALL, small_classics
from tests.tiers import examples_of

Message = tuple[int, str, int]
"""A step, which of its fields, and which span of that."""

Value = Counter[object]
POISON = "poison"


def messages(schedule: Schedule) -> Iterator[Message]:
    """Everything that goes from one rank to another."""
    for number, step in enumerate(schedule.steps):
        if step.send:
            yield number, "send", 0
        for field, spans in (("reads", step.reads), ("writes", step.writes)):
            for k, span in enumerate(spans):
                if span.rank != step.rank:
                    yield number, field, k


class Spoilt:
    """Runs whole steps in an order; some messages arrive with poison, or not at all."""

    def __init__(
        self,
        schedule: Schedule,
        order: Sequence[int],
        spoilt: Collection[Message] = (),
        *,
        lost: bool = False,
    ) -> None:
        self.schedule, self.spoilt, self.lost = schedule, spoilt, lost
        self.memory: dict[Cell, Value] = {}
        self.queues: dict[object, deque[list[Value]]] = defaultdict(deque)
        for rank, starts in enumerate(schedule.contract.starts):
            for chunk, start in enumerate(starts):
                at = cell(schedule, rank, Buffer.INPUT, chunk)
                self.memory[at] = Counter([start if start is not None else f"nothing at {at}"])
        for number in order:
            self.do(number, schedule.steps[number])

    def do(self, number: int, step: Step) -> None:
        values: list[Value] = [Counter() for _ in range(step.count)]
        if step.receive:
            values = self.queues[step.receive].popleft()
        for k, span in enumerate(step.reads):
            more = self.passed([self.read(at) for at in self.cells(span)], (number, "reads", k))
            values = [a + b for a, b in zip(values, more, strict=True)]
        for k, span in enumerate(step.writes):
            message = (number, "writes", k)
            if not (self.lost and message in self.spoilt):
                passed = self.passed(values, message)
                self.memory.update(zip(self.cells(span), passed, strict=True))
        if step.send:
            self.queues[step.send].append(self.passed(values, (number, "send", 0)))

    def passed(self, values: list[Value], message: Message) -> list[Value]:
        if message not in self.spoilt:
            return values
        return [Counter() if self.lost else value + Counter([POISON]) for value in values]

    def read(self, at: Cell) -> Value:
        return self.memory.get(at, Counter([f"nothing at {at}"]))

    def cells(self, span: Span) -> list[Cell]:
        chunks = range(span.start, span.start + span.count)
        return [cell(self.schedule, span.rank, span.buffer, chunk) for chunk in chunks]

    def outputs(self) -> list[Value]:
        return [
            self.read(cell(self.schedule, goal.rank, Buffer.OUTPUT, goal.chunk))
            for goal in self.schedule.contract.goals
        ]


def unneeded(schedule: Schedule, order: Sequence[int]) -> list[Message]:
    """Messages whose poison no output shows."""
    right = Spoilt(schedule, order).outputs()
    return [m for m in messages(schedule) if Spoilt(schedule, order, [m]).outputs() == right]


def with_some_goals(schedule: Schedule, seed: int) -> Schedule:
    """The schedule asked for a part of what it gives."""
    random = Random(seed)
    kept = tuple(goal for goal in schedule.contract.goals if random.random() < 0.5)
    return replace(schedule, contract=replace(schedule.contract, goals=kept, collective="custom"))


def check(schedule: Schedule) -> int:
    """What is found is what poison finds, and can be lost; how many there are."""
    order = some_run(schedule)
    expected = unneeded(schedule, order)
    found = unused_messages(index_of(schedule), order)
    assert Counter(found) == Counter(number for number, _, _ in expected)
    right = Spoilt(schedule, order).outputs()
    assert Spoilt(schedule, order, expected, lost=True).outputs() == right
    return len(found)


ALL = {**{name: make() for name, make in SMALL.items()}, **small_classics()}


@pytest.mark.parametrize("name", ALL)
def test_classics_send_nothing_that_nobody_needs(name: str) -> None:
    report = verify(ALL[name])
    assert report.verdict is Verdict.VALID
    assert report.unused == ()
    assert check(ALL[name]) == 0


@pytest.mark.parametrize("name", ALL)
def test_with_fewer_goals_it_is_what_poison_finds(name: str) -> None:
    counts = [check(with_some_goals(ALL[name], seed)) for seed in range(3)]
    none = replace(ALL[name], contract=replace(ALL[name].contract, goals=()))
    every = sum(1 for _ in messages(ALL[name]))
    assert check(none) == every >= max(counts)


@settings(max_examples=examples_of(60))
@given(st.integers(0, 10**6))
def test_random_schedules(seed: int) -> None:
    schedule = with_some_goals(random_schedule(seed, steps=12), seed)
    report = verify(schedule, time_limit_s=None)
    if report.unused is None:
        assert report.verdict is not Verdict.VALID
    elif not report.races:
        check(schedule)
        assert len(report.unused) == len(unneeded(schedule, some_run(schedule)))
    else:  # what is found is unused in every interleaving, this one too
        expected = Counter(number for number, _, _ in unneeded(schedule, some_run(schedule)))
        assert Counter(report.unused) <= expected


def test_the_warning_counts_them_and_names_two() -> None:
    schedule = ALL["chain"]
    goals = tuple(goal for goal in schedule.contract.goals if goal.rank < 2)
    fewer = replace(schedule, contract=replace(schedule.contract, goals=goals, collective="custom"))
    (text,) = verify(fewer).warnings
    found = unneeded(fewer, some_run(fewer))
    assert text.startswith(
        f"{len(found)} messages carry data that no output needs: such as that of"
    )
    assert str(fewer.steps[found[0][0]]) in text
    only = tuple(goal for goal in schedule.contract.goals if goal != schedule.contract.goals[-1])
    one = replace(schedule, contract=replace(schedule.contract, goals=only, collective="custom"))
    (text,) = verify(one).warnings
    assert text.startswith("1 message carries data that no output needs: that of rank")


def test_a_wrong_schedule_is_not_looked_through() -> None:
    schedule = ALL["chain"]
    goals = (Goal(0, 0, ()), *schedule.contract.goals[1:])
    wrong = replace(schedule, contract=replace(schedule.contract, goals=goals))
    assert verify(wrong).unused is None


def test_what_only_a_racing_store_would_need_counts_as_needed() -> None:
    """Two ranks put into one chunk that no goal names, in no certain order."""
    schedule = ALL["puts 3"]
    steps = list(schedule.steps)
    puts = [n for n, step in enumerate(steps) if step.writes and step.writes[0].rank != step.rank]
    order = some_run(schedule)
    index = index_of(schedule)
    none = index_of(replace(schedule, contract=replace(schedule.contract, goals=())))
    cells = {c for n in puts for span in steps[n].writes for c in index.memory.cells(span)}
    assert len(unused_messages(none, order)) == len(puts)
    assert unused_messages(none, order, cells) == ()
    some = set(itertools.islice(sorted(cells), 1))
    assert 0 < len(unused_messages(none, order, some)) < len(puts)
